#pragma once

// An upstream's throttle and the line before it, from one configuration to the next: both stay
// while the options do, and what was learned stays while a rate means the same. Shared by all
// workers: any thread. Requests keep the one that they began with.

#include <memory>

#include "coordination/base/random.h"
#include "proxy/throttle/throttle.h"
#include "proxy/throttle/throttle_line.h"
#include "proxy/upstream_options.h"

namespace weir {

class UpstreamThrottle {
 public:
  // nullptr where none is configured. `previous` may be nullptr.
  static std::shared_ptr<UpstreamThrottle> make(const ThrottleOptions& options,
                                                const std::shared_ptr<UpstreamThrottle>& previous,
                                                Random& random, SteadyTime now);
  UpstreamThrottle(const ThrottleOptions& options, Random& random, SteadyTime now);

  Throttle& throttle() { return *throttle_; }
  ThrottleLine& line() { return line_; }
  const ThrottleOptions& options() const { return options_; }

 private:
  const ThrottleOptions options_;
  const std::unique_ptr<Throttle> throttle_;
  ThrottleLine line_;
};

}  // namespace weir
