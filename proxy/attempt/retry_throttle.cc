#include "proxy/attempt/retry_throttle.h"

#include <algorithm>
#include <cstdint>

namespace weir {
namespace {

constexpr int kToken = 1000;

// Returns what it was changed to.
template <class Change>
int update(std::atomic<int>& value, Change change) {
  int before = value.load(std::memory_order_relaxed);
  int after = change(before);
  while (!value.compare_exchange_weak(before, after, std::memory_order_relaxed)) {
    after = change(before);
  }
  return after;
}

}  // namespace

std::shared_ptr<RetryThrottle> RetryThrottle::successor(
    const std::shared_ptr<RetryThrottle>& previous, const RetryThrottling& options) {
  if (!previous) return std::make_shared<RetryThrottle>(options);
  if (previous->options_ == options) return previous;
  auto next = std::make_shared<RetryThrottle>(options);
  next->milli_ = static_cast<int>(std::int64_t{options.max_milli} * previous->milli_ /
                                  previous->options_.max_milli);
  previous->next_owner_ = next;
  previous->next_.store(next.get(), std::memory_order_release);
  return next;
}

RetryThrottle& RetryThrottle::latest() {
  RetryThrottle* throttle = this;
  while (RetryThrottle* next = throttle->next_.load(std::memory_order_acquire)) throttle = next;
  return *throttle;
}

bool RetryThrottle::failure() {
  RetryThrottle& throttle = latest();
  return throttle.above_half(
      update(throttle.milli_, [](int milli) { return std::max(0, milli - kToken); }));
}

void RetryThrottle::success() {
  RetryThrottle& throttle = latest();
  const RetryThrottling& options = throttle.options_;
  // Full is the usual case, and costs no write.
  if (throttle.milli_.load(std::memory_order_relaxed) == options.max_milli) return;
  update(throttle.milli_, [&](int milli) {
    return std::min(options.max_milli, milli + std::min(options.ratio_milli, options.max_milli));
  });
}

bool RetryThrottle::enough() const { return latest().above_half(milli()); }

}  // namespace weir
