#pragma once

// /v1/upstreams: how each upstream is faring. A pure function of what it is given.

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "daemon/cooldowns.h"
#include "daemon/throttles.h"
#include "proxy/attempt/upstream_retries.h"
#include "proxy/stats.h"
#include "proxy/upstream_options.h"

namespace weir {

// What is known of upstreams, by those who learn it.
struct UpstreamKnowledge {
  const Cooldowns& cooldowns;
  const Throttles& throttles;
  const std::map<std::string, std::shared_ptr<UpstreamRetries>>& retries;
  std::span<const ProxyStats* const> loops;
};

// {"kind":…,"rate":…,"buckets":N,"in_use":N,"waiting":N,"dropped":N}; where it is off only the
// kind.
nlohmann::ordered_json throttle_entry(const UpstreamOptions& upstream, const Throttles& throttles,
                                      SteadyTime now);

// {"upstreams":[{"name":…,
//   "throttle":{"kind":…,"rate":…,"buckets":N,"in_use":N,"waiting":N,"dropped":N,"denied":N},
//   "budget":{"affordable":N,"bucket":{"rate":…,"tokens":…,"first_tries":N,"retries":N}},
//   "cooldowns":{"enabled":…,"records":N,"waiting":N,"longest":[…]}}]}
// Of a throttle that is off only the kind; a budget only where there is a service config, its
// bucket where that is enabled; of the cooldowns those that last longest, at most 100.
std::string upstreams_page(const std::vector<UpstreamOptions>& upstreams,
                           const UpstreamKnowledge& known, SteadyTime now);

}  // namespace weir
