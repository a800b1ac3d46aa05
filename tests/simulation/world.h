#pragma once

// What one seed decides everything with: a generator of numbers, and virtual time as a queue of
// events. Nothing here or in what is built on it reads a real clock. Single-threaded.

#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <string_view>
#include <vector>

#include "coordination/base/clock.h"
#include "coordination/base/random.h"

namespace weir::sim {

using Duration = SteadyTime::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr SteadyTime kStart{seconds{1'000'000}};
inline constexpr WallTime kStartWall{seconds{1'800'000'000}};

inline double in_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline double since_start(SteadyTime t) { return in_seconds(t - kStart); }

// SplitMix64.
class Dice final : public Random {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // in [0, 1)
  bool chance(double p) { return unit() < p; }
  // Both ends included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  Duration between(Duration low, Duration high) {
    return Duration{between(low.count(), high.count())};
  }
  // Exponential, so that some gaps are short and some are long.
  Duration gap(Duration mean);
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  std::uint64_t state_;
};

// Events of one moment happen in the order in which they were asked for.
class Events {
 public:
  SteadyTime now() const { return now_; }
  void at(SteadyTime when, std::function<void()> what);
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  // One event; false: there is none before `end`, and it is now `end`.
  bool step(SteadyTime end);

 private:
  struct Event {
    SteadyTime when;
    std::uint64_t order;
    std::function<void()> what;
    friend bool operator>(const Event& a, const Event& b) {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };
  SteadyTime now_ = kStart;
  std::uint64_t asked_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
};

// True time, as the store has it.
class TrueClock final : public Clock {
 public:
  explicit TrueClock(const Events& events) : events_(events) {}
  SteadyTime steady_now() const override { return events_.now(); }
  WallTime wall_now() const override {
    return kStartWall + std::chrono::duration_cast<WallTime::duration>(events_.now() - kStart);
  }

 private:
  const Events& events_;
};

// One replica's: a steady clock that began at another number, and a wall clock that is wrong.
class SkewedClock final : public Clock {
 public:
  SkewedClock(const TrueClock& truth, Duration steady_offset, Duration wall_offset)
      : truth_(truth), steady_offset_(steady_offset), wall_offset_(wall_offset) {}
  SteadyTime steady_now() const override { return truth_.steady_now() + steady_offset_; }
  WallTime wall_now() const override { return truth_.wall_now() + wall_offset_; }
  SteadyTime true_time(SteadyTime mine) const { return mine - steady_offset_; }
  Duration wall_offset() const { return wall_offset_; }
  void step(Duration by) { wall_offset_ += by; }

 private:
  const TrueClock& truth_;
  const Duration steady_offset_;
  Duration wall_offset_;
};

}  // namespace weir::sim
