#pragma once

// The throttles of all upstreams. They live on from one configuration to the next, and those that
// were replaced as long as requests hold them. Owned by the daemon, on its thread.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/system.h"
#include "proxy/throttle/upstream_throttle.h"

namespace weir {

class Throttles {
 public:
  explicit Throttles(const Clock& clock) : clock_(clock) {}

  // The upstream's throttle, as it is configured now; nullptr: it has none.
  std::shared_ptr<UpstreamThrottle> configure(const UpstreamOptions& upstream);
  // Other upstreams are no more.
  void keep_only(const std::vector<UpstreamOptions>& upstreams);
  // The same, without a change.
  UpstreamThrottle* find(const std::string& upstream) const;
  // By upstream, of those that have one.
  std::map<std::string, ThrottleFacts> facts() const;
  // Nobody waits any more.
  void drain();

 private:
  const Clock& clock_;
  SystemRandom random_;
  std::map<std::string, std::shared_ptr<UpstreamThrottle>> current_;
  std::vector<std::weak_ptr<UpstreamThrottle>> replaced_;
};

}  // namespace weir
