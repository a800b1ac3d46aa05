#pragma once

// Time, as everything but the process itself sees it. Decisions take `now` as an argument; only the
// shells around them hold a Clock. Steady and wall time are different types, so one cannot be
// passed for the other: delays and deadlines are steady, windows and stamps are wall time.

#include <chrono>

namespace weir {

using SteadyTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

// Both readings of one moment.
struct Instant {
  SteadyTime steady;
  WallTime wall;
};

// Thread-safe. The real one is daemon/system.cc; tests pass one that they move by hand.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual SteadyTime steady_now() const = 0;
  virtual WallTime wall_now() const = 0;

  Instant now() const { return {steady_now(), wall_now()}; }
};

}  // namespace weir
