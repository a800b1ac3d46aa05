#pragma once

// Tokens that come with time and are taken one by one. Rate and capacity are said at each use, so
// that one bucket can follow a rate that changes: what is stored is never more than the capacity of
// now. Starts full. Not thread-safe: its owner guards it.

#include <algorithm>
#include <chrono>
#include <limits>

#include "coordination/base/clock.h"

namespace weir {

class TokenBucket {
 public:
  // A clock read by another thread may be a little behind: then nothing is added.
  void refill(double rate, double capacity, SteadyTime now) {
    if (now > last_) {
      if (last_ != SteadyTime::min()) {
        tokens_ += rate * std::chrono::duration<double>(now - last_).count();
      }
      last_ = now;
    }
    tokens_ = std::min(tokens_, capacity);
  }

  // Behind a refill.
  double tokens() const { return tokens_; }
  bool take() {
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // What is above `most` is lost.
  void keep_at_most(double most) { tokens_ = std::min(tokens_, most); }

 private:
  double tokens_ = std::numeric_limits<double>::infinity();  // until the first refill
  SteadyTime last_ = SteadyTime::min();
};

// Until a bucket that has so many tokens has one to give.
inline std::chrono::nanoseconds until_one(double tokens, double rate) {
  constexpr std::chrono::nanoseconds kMost = std::chrono::hours{1};
  if (tokens >= 1) return std::chrono::nanoseconds{0};
  const double seconds = rate > 0 ? (1 - tokens) / rate : 3600;
  return std::min(kMost, std::chrono::ceil<std::chrono::nanoseconds>(
                             std::chrono::duration<double>(std::min(seconds, 3600.0))));
}

}  // namespace weir
