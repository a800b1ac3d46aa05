#pragma once

// What AWS' clients do in standard mode: a model, to compare Weir with. First tries always pass.
// A retry takes tokens; success gives back what its retry took, or one token if it needed none.
// Pure: random fractions are handed in.

#include <algorithm>
#include <cmath>

namespace weir::test {

class RetryQuota {
 public:
  static constexpr int kMost = 500, kRetry = 5, kRetryOfTimeout = 10;

  int tokens() const { return tokens_; }

  // Whether to retry.
  bool take(int cost) {
    if (tokens_ < cost) return false;
    tokens_ -= cost;
    return true;
  }

  // `taken` by the retry that succeeded; 0: the first try did.
  void success(int taken) { tokens_ = std::min(kMost, tokens_ + std::max(1, taken)); }

  // Seconds before the first retry (0), the second (1), ...
  static double backoff(int retry, double fraction) {
    return fraction * std::min(20.0, std::exp2(retry));
  }

 private:
  int tokens_ = kMost;
};

}  // namespace weir::test
