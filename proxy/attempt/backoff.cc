#include "proxy/attempt/backoff.h"

#include <algorithm>

namespace weir {
namespace {

// Far above any delay, far below what a double or 64 bits can hold.
constexpr double kMost = 4e18;

}  // namespace

void Backoff::reset() { current_ = last_ = static_cast<double>(options_.initial.count()); }

std::chrono::nanoseconds Backoff::next(double random) {
  const double initial = static_cast<double>(options_.initial.count());
  const double max = static_cast<double>(options_.max.count());
  double delay = std::min(current_, max);
  current_ = std::min(current_ * options_.multiplier, kMost);
  switch (options_.jitter) {
    case Jitter::proportional:
      delay *= 0.8 + 0.4 * random;
      break;
    case Jitter::full:
      delay *= random;
      break;
    case Jitter::equal:
      delay *= 0.5 + 0.5 * random;
      break;
    case Jitter::decorrelated:
      delay = last_ = std::min(max, initial + random * (3 * last_ - initial));
      break;
    case Jitter::none:
      break;
  }
  return std::chrono::nanoseconds{
      static_cast<std::chrono::nanoseconds::rep>(std::min(delay, kMost))};
}

}  // namespace weir
