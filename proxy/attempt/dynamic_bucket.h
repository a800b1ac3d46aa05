#pragma once

// What an upstream can take, learned from what it took: tokens per second that first tries, retries
// and hedges draw from. First tries are always granted, with a token or without; a retry or a hedge
// needs a token and a place within its share, and is dropped at once where either is missing.
//
//   granted if  granted + 1 <= max(1, retry_share * first tries) over the last window
//               and a token is there
//   each window:  overload was seen                    rate = max(floor, 0.7 * rate)
//                 else a token was missed, and some     rate += max(1, 0.05 * rate)
//                      attempt succeeded
//                 else                                  as it was: idle time teaches nothing
//
// Since first tries that find no token pass all the same, the rate grows to what the upstream
// serves, and retries live on what first tries leave of it. Nobody waits here: who is refused was
// not charged, holds no place, and the next token is for the next who asks.
//
// Pure: `now` comes in, and may lag behind what came before. One thread at a time.

#include <array>
#include <chrono>
#include <cstdint>

#include "coordination/base/clock.h"

namespace weir {

class DynamicBucket {
 public:
  struct Options {
    std::chrono::nanoseconds window{2'000'000'000};
    double retry_share = 0.05;
    double rate = 100;  // tokens per second, to begin with
    double floor = 5;
    // How long tokens are saved up: more would be a burst that the upstream never showed to bear.
    std::chrono::nanoseconds burst{500'000'000};
  };
  // What it has learned, and the counts of the last window.
  struct View {
    double rate = 0;
    double tokens = 0;
    std::int64_t first_tries = 0;
    std::int64_t retries = 0;
  };

  DynamicBucket(const Options& options, SteadyTime now);

  void on_first_try(SteadyTime now);
  // For a retry or a hedge; false: drop it, and nothing was charged.
  bool try_retry(SteadyTime now);
  // How attempts ended. Those that sending less would not have helped are neither.
  void on_success(SteadyTime now);
  void on_overload(SteadyTime now);

  View view(SteadyTime now);

 private:
  static constexpr int kSlots = 10;
  struct Slot {
    std::int64_t number = -1;  // counted from the start
    std::int64_t first_tries = 0;
    std::int64_t retries = 0;
  };

  void advance(SteadyTime now);
  void refill(SteadyTime until);
  void learn();
  bool take_token();
  Slot& slot();
  Slot last_window() const;

  const Options options_;
  const SteadyTime start_;
  SteadyTime now_;         // the latest that came
  SteadyTime window_end_;  // when what was seen is judged
  double rate_;
  double tokens_ = 0;
  std::array<Slot, kSlots> slots_;  // the last window
  // Seen since the last judgement:
  bool token_missed_ = false;
  bool succeeded_ = false;
  bool overloaded_ = false;
};

}  // namespace weir
