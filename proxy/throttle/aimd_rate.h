#pragma once

// One number that grows by a constant with each success and shrinks by a factor with each overload
// (Chiu and Jain):
//
//   success:  T = min(ceiling, T + increase)        overload:  T = max(floor, T * decrease)
//
// What it counts is its owner's to say. Any thread, no lock, no update lost.

#include <atomic>
#include <chrono>
#include <cstdint>

#include "coordination/base/clock.h"

namespace weir {

struct AimdOptions {
  double initial = 100;  // floor <= initial <= ceiling
  double floor = 5;
  double ceiling = 0;  // 0: none
  double increase = 1;
  double decrease = 0.7;
  // Overloads so soon behind one that counted tell nothing new; 0: each counts.
  std::chrono::nanoseconds min_decrease_gap{0};
};

class AimdRate {
 public:
  explicit AimdRate(const AimdOptions& options);

  double value() const { return value_.load(std::memory_order_relaxed); }
  void success();
  void overload(SteadyTime now);
  // Goes on from what another has learned, as far as the bounds allow.
  void start_at(double value);

 private:
  bool gap_is_over(SteadyTime now);

  const AimdOptions options_;
  const double ceiling_;  // or infinity
  std::atomic<double> value_;
  std::atomic<std::int64_t> decreased_at_;  // of SteadyTime
};

}  // namespace weir
