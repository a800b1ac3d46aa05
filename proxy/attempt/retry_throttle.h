#pragma once

// Tokens that failures take and successes bring back, shared by all calls to one upstream: while at
// most half of them are left, nothing is retried or hedged (gRFC A6). Counted in thousandths.
//
//   failure: milli = max(0, milli - 1000);           enough if milli > max / 2
//   success: milli = min(max, milli + ratio_milli)
//
// In steady state a call costs the upstream at most 1 + tokenRatio attempts, plus maxTokens / 2
// once. Any thread, no lock. A change of the configuration makes a successor that starts at the
// same fraction; who still holds the old one is passed on to it.

#include <atomic>
#include <memory>

namespace weir {

struct RetryThrottling {
  int max_milli = 0;
  int ratio_milli = 0;
  bool operator==(const RetryThrottling&) const = default;
};

class RetryThrottle {
 public:
  explicit RetryThrottle(const RetryThrottling& options)
      : options_(options), milli_(options.max_milli) {}

  // The throttle for these options: `previous` itself if they are its own, else its successor.
  // One thread at a time.
  static std::shared_ptr<RetryThrottle> successor(const std::shared_ptr<RetryThrottle>& previous,
                                                  const RetryThrottling& options);

  // True: there are still tokens enough to try again.
  bool failure();
  void success();
  bool enough() const;
  int milli() const { return latest().milli_.load(std::memory_order_relaxed); }

 private:
  bool above_half(int milli) const { return milli > options_.max_milli / 2; }
  RetryThrottle& latest();
  const RetryThrottle& latest() const { return const_cast<RetryThrottle*>(this)->latest(); }

  const RetryThrottling options_;
  std::atomic<int> milli_;
  std::atomic<RetryThrottle*> next_{nullptr};  // set once, behind next_owner_
  std::shared_ptr<RetryThrottle> next_owner_;  // written before next_, and not touched again
};

}  // namespace weir
