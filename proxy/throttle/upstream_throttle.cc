#include "proxy/throttle/upstream_throttle.h"

namespace weir {

UpstreamThrottle::UpstreamThrottle(const ThrottleOptions& options, Random& random, SteadyTime now)
    : options_(options), throttle_(make_throttle(options, random, now)), line_(*throttle_) {}

std::shared_ptr<UpstreamThrottle> UpstreamThrottle::make(
    const ThrottleOptions& options, const std::shared_ptr<UpstreamThrottle>& previous,
    Random& random, SteadyTime now) {
  if (options.kind == ThrottleOptions::Kind::off) return nullptr;
  if (previous && previous->options_ == options) return previous;
  auto made = std::make_shared<UpstreamThrottle>(options, random, now);
  if (previous && previous->options_.kind == options.kind) {
    made->throttle_->start_at(previous->throttle_->facts(now).rate);
  }
  return made;
}

}  // namespace weir
