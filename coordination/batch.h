#pragma once

// The units of one claim, as the allowance that they were brought to has them.

#include <atomic>
#include <cstdint>
#include <memory>

#include "coordination/base/clock.h"
#include "coordination/limit.h"

namespace weir {

// Until when units under one lease may be spent. The coordinator moves it, workers look at it, so
// that a replica that was paused spends nothing of what has meanwhile expired.
class Fence {
 public:
  explicit Fence(SteadyTime until) : until_(until.time_since_epoch().count()) {}
  bool open(SteadyTime now) const {
    return now.time_since_epoch().count() < until_.load(std::memory_order_acquire);
  }
  SteadyTime until() const { return SteadyTime{SteadyTime::duration{until_.load()}}; }
  void move(SteadyTime until) { until_.store(until.time_since_epoch().count()); }

 private:
  std::atomic<SteadyTime::rep> until_;
};

struct Batch {
  // Constant:
  std::uint64_t claim = 0;  // the coordinator's number for it
  bool sole = false;        // of no claim: all units of a limit that nobody else counts
  Mode mode = Mode::started;
  std::shared_ptr<const Fence> fence;
  WallTime window_end = WallTime::max();         // spent only before
  SteadyTime hold_until = SteadyTime::max();     // unspent units are to go back then
  SteadyTime pass_on_until = SteadyTime::max();  // what comes back later is for other replicas too
  // Guarded by the allowance's lock:
  std::int64_t in_hand = 0;
  std::int64_t out = 0;  // with permits, and to be heard of again
  SteadyTime last_use{};
  bool recalled = false;  // what comes back goes back
  // Set once, when nothing of it counts any more whatever its window and lease say.
  std::atomic<bool> written_off{false};

  bool good(const Instant& now) const {
    return fence->open(now.steady) && now.wall < window_end && !written_off;
  }
};

}  // namespace weir
