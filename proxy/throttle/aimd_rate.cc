#include "proxy/throttle/aimd_rate.h"

#include <algorithm>
#include <limits>

namespace weir {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

template <class Change>
void update(std::atomic<double>& value, Change change) {
  double before = value.load(std::memory_order_relaxed);
  while (!value.compare_exchange_weak(before, change(before), std::memory_order_relaxed)) {
  }
}

}  // namespace

AimdRate::AimdRate(const AimdOptions& options)
    : options_(options),
      ceiling_(options.ceiling > 0 ? options.ceiling : std::numeric_limits<double>::infinity()),
      value_(options.initial),
      decreased_at_(kNever) {}

void AimdRate::success() {
  update(value_, [this](double value) { return std::min(ceiling_, value + options_.increase); });
}

void AimdRate::overload(SteadyTime now) {
  if (options_.min_decrease_gap.count() > 0 && !gap_is_over(now)) return;
  update(value_,
         [this](double value) { return std::max(options_.floor, value * options_.decrease); });
}

// True for one of those who ask at the same time.
bool AimdRate::gap_is_over(SteadyTime now) {
  const std::int64_t at = now.time_since_epoch().count();
  std::int64_t last = decreased_at_.load(std::memory_order_relaxed);
  do {
    if (last != kNever && at - last < options_.min_decrease_gap.count()) return false;
  } while (!decreased_at_.compare_exchange_weak(last, at, std::memory_order_relaxed));
  return true;
}

void AimdRate::start_at(double value) {
  value_.store(std::clamp(value, options_.floor, ceiling_), std::memory_order_relaxed);
}

}  // namespace weir
