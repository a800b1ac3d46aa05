#pragma once

// How many retries and hedges an upstream's first tries pay for: a share of them over the last
// `ttl`, plus a reserve per second. Nobody waits for it, and first tries are never held back.
//
//   first try: + 1000 in the slot of now      retry: - withdraw, where withdraw = 1000 / share
//   balance = min_per_second * ttl * withdraw + the ten slots of the last ttl
//
// Integers only. Pure: `now` comes in. One thread at a time.

#include <array>
#include <chrono>
#include <cstdint>

#include "coordination/base/clock.h"

namespace weir {

class RetryBudget {
 public:
  // Throws std::invalid_argument: ttl within 1 s … 60 s, min_per_second >= 0, share 0 … 1000.
  RetryBudget(double share, int min_per_second, std::chrono::milliseconds ttl, SteadyTime now);

  void on_first_try(SteadyTime now) { slot(now).sum += deposit_; }
  // Pays for one retry; false: cannot, and nothing is changed.
  bool try_retry(SteadyTime now);
  // Retries that could be paid for now.
  std::int64_t affordable(SteadyTime now) const;

 private:
  static constexpr int kSlots = 10;
  struct Slot {
    std::int64_t number = -1;  // counted from the start
    std::int64_t sum = 0;
  };

  std::int64_t number_of(SteadyTime now) const { return (now - start_) / slot_length_; }
  Slot& slot(SteadyTime now);
  std::int64_t balance(SteadyTime now) const;

  const SteadyTime start_;
  const std::chrono::nanoseconds slot_length_;
  std::int64_t deposit_ = 0, withdraw_ = 1, reserve_ = 0;  // constant after construction
  std::array<Slot, kSlots> slots_;
};

}  // namespace weir
