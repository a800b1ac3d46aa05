#pragma once

// The proxy on one loop: what a request needs from outside itself. Owned by its loop's thread.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coordination/base/random.h"
#include "coordination/coordinator.h"
#include "proxy/attempt/attempts.h"
#include "proxy/cooldown.h"
#include "proxy/forwarded.h"
#include "proxy/http/connection.h"
#include "proxy/http/upstream.h"
#include "proxy/limit_fields.h"
#include "proxy/path.h"
#include "proxy/route.h"
#include "proxy/stats.h"
#include "proxy/throttle/line_bell.h"
#include "proxy/throttle/upstream_throttle.h"

namespace weir {

// What the configuration says to the proxy. Constant, shared by all loops.
struct Settings {
  std::shared_ptr<const Routes> routes;
  std::vector<UpstreamOptions> upstreams;
  std::vector<std::shared_ptr<UpstreamRetries>>
      retries;                                       // by upstream; nullptr: nothing configured
  std::vector<std::shared_ptr<Cooldown>> cooldowns;  // by upstream; nullptr: none
  std::vector<std::shared_ptr<UpstreamThrottle>> throttles;  // likewise
  EscapedSlashes escaped_slashes = EscapedSlashes::reject;
  LimitHeaders headers = LimitHeaders::ietf;
  std::vector<std::string> trusted_proxies;
};

// One request as the access log tells it.
struct AccessRecord {
  std::string_view client, method, target, rule;
  int status;  // 0: none was sent
  Ending ending;
  std::chrono::microseconds took;
};
using AccessLog = std::function<void(const AccessRecord&)>;

// What the proxy on one loop works with; all of it outlives the proxy.
struct Surroundings {
  http::Loop& loop;
  ProxyStats& stats;
  Coordinator& coordinator;
  Random& random;
};

// Settings made ready for use on one loop. An exchange holds the one it began with.
struct Setup {
  Setup(const Settings& settings, const Setup* previous, const Surroundings& surroundings);

  Coordinator& coordinator;
  ProxyStats& stats;
  std::shared_ptr<const Routes> routes;
  TrustedProxies trusted;
  EscapedSlashes escaped_slashes;
  LimitHeaders headers;
  std::vector<std::shared_ptr<http::Upstream>> upstreams;
  std::vector<std::shared_ptr<UpstreamRetries>> retries;  // by upstream
  struct UpstreamCooldown {
    std::shared_ptr<Cooldown> gate;  // nullptr: none
    TenantSource project;
  };
  std::vector<UpstreamCooldown> cooldowns;  // by upstream
  struct Throttled {
    std::shared_ptr<UpstreamThrottle> gate;  // nullptr: none
    std::unique_ptr<LineBell> bell;
  };
  std::vector<Throttled> throttles;  // by upstream
  struct PerRule {
    RuleStats* stats;
    http::Upstream* upstream;
    AttemptSurroundings attempts;
    Policy* policy;  // nullptr: unlimited
    std::size_t upstream_index;
  };
  std::vector<PerRule> per_rule;  // by Routed::rule_index
};

// What an exchange writes its heads into: lent for as long as it lasts, so that one after another
// can use the same memory.
struct Buffers {
  std::string target, resource;  // rewritten, if they had to be
  std::string client, tenant;    // its address if not the peer's; where a line or a throttle asks
  std::string project;           // where the upstream's cooldown asks
  std::string wire;              // the request's head, and of its body what was there with it
  std::string out;               // the answer's head on its way to the client
  std::string limit_fields;      // a part of it
  http::Head answer;
};

class Proxy {
 public:
  explicit Proxy(const Surroundings& surroundings);
  ~Proxy();

  // Holds from the next request on. An upstream that did not change keeps its connections.
  void configure(const Settings& settings, AccessLog access_log);
  // Serves one request: the handler of an http::Server.
  http::Task<void> serve(http::Connection& connection);
  // Counts one that never got that far.
  void refused(const http::Connection& connection, http::Denial denial);

 private:
  struct Seat;  // an exchange and its buffers

  std::unique_ptr<Seat> borrow_seat();
  void return_seat(std::unique_ptr<Seat> seat);

  const Surroundings surroundings_;
  std::shared_ptr<const Setup> setup_;
  std::vector<std::unique_ptr<Seat>> spare_seats_;
  AccessLog access_log_;  // empty: off
};

}  // namespace weir
