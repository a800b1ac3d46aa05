#pragma once

// How long to wait before the next attempt. Without jitter delay n is
// min(initial * multiplier^(n-1), max). Pure: the random number comes in.

#include <chrono>

namespace weir {

enum class Jitter {
  proportional,  // 80 to 120 % of it, as gRFC A6 has it today; so a little above `max` at times
  full,          // 0 to 100 % of it, as A6 had it at first
  equal,         // 50 to 100 % of it
  decorrelated,  // min(max, initial to three times the last delay)
  none,
};

struct BackoffOptions {
  std::chrono::nanoseconds initial{0}, max{0};
  double multiplier = 1;
  Jitter jitter = Jitter::proportional;
};

class Backoff {
 public:
  explicit Backoff(const BackoffOptions& options) : options_(options) { reset(); }

  // `random` in [0, 1).
  std::chrono::nanoseconds next(double random);
  // The server chose a delay itself: begin anew.
  void reset();

 private:
  const BackoffOptions options_;
  double current_ = 0;  // ns, before the cap
  double last_ = 0;     // ns
};

}  // namespace weir
