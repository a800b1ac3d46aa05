#include "proxy/attempt/dynamic_bucket.h"

#include <algorithm>

namespace weir {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kDecrease = 0.7;
constexpr double kIncrease = 0.05;
constexpr double kLeastIncrease = 1;
// Without it, who makes fewer first tries than 1 / share in a window could never retry.
constexpr double kLeastRetries = 1;

}  // namespace

DynamicBucket::DynamicBucket(const Options& options, SteadyTime now)
    : options_(options),
      start_(now),
      now_(now),
      window_end_(now + options.window),
      rate_(std::max(options.rate, options.floor)) {
  tokens_ = std::max(1.0, rate_ * Seconds(options_.burst).count());
}

void DynamicBucket::on_first_try(SteadyTime now) {
  advance(now);
  ++slot().first_tries;
  if (!take_token()) token_missed_ = true;
}

bool DynamicBucket::try_retry(SteadyTime now) {
  advance(now);
  const Slot last = last_window();
  const double most =
      std::max(kLeastRetries, options_.retry_share * static_cast<double>(last.first_tries));
  if (static_cast<double>(last.retries + 1) > most) return false;
  if (!take_token()) {
    token_missed_ = true;
    return false;
  }
  ++slot().retries;
  return true;
}

void DynamicBucket::on_success(SteadyTime now) {
  advance(now);
  succeeded_ = true;
}

void DynamicBucket::on_overload(SteadyTime now) {
  advance(now);
  overloaded_ = true;
}

DynamicBucket::View DynamicBucket::view(SteadyTime now) {
  advance(now);
  const Slot last = last_window();
  return {rate_, tokens_, last.first_tries, last.retries};
}

void DynamicBucket::advance(SteadyTime now) {
  if (now >= window_end_) {
    refill(window_end_);
    learn();
    window_end_ += ((now - window_end_) / options_.window + 1) * options_.window;
  }
  refill(now);
}

void DynamicBucket::refill(SteadyTime until) {
  if (until <= now_) return;
  const double most = std::max(1.0, rate_ * Seconds(options_.burst).count());
  tokens_ = std::min(most, tokens_ + rate_ * Seconds(until - now_).count());
  now_ = until;
}

// Once for each window, not for each attempt: many failures of one moment are one lesson.
void DynamicBucket::learn() {
  if (overloaded_) {
    rate_ = std::max(options_.floor, kDecrease * rate_);
  } else if (token_missed_ && succeeded_) {
    rate_ += std::max(kLeastIncrease, kIncrease * rate_);
  }
  token_missed_ = succeeded_ = overloaded_ = false;
}

bool DynamicBucket::take_token() {
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

DynamicBucket::Slot& DynamicBucket::slot() {
  const std::int64_t number = (now_ - start_) * kSlots / options_.window;
  Slot& slot = slots_[static_cast<std::size_t>(number % kSlots)];
  if (slot.number != number) slot = {number, 0, 0};
  return slot;
}

DynamicBucket::Slot DynamicBucket::last_window() const {
  const std::int64_t number = (now_ - start_) * kSlots / options_.window;
  Slot sum{number, 0, 0};
  for (const Slot& slot : slots_) {
    if (slot.number < 0 || number - slot.number >= kSlots) continue;
    sum.first_tries += slot.first_tries;
    sum.retries += slot.retries;
  }
  return sum;
}

}  // namespace weir
