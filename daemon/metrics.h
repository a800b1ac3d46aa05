#pragma once

// The daemon's counts as Prometheus text. Labels are rules and upstreams, never paths or tenants.

#include <span>
#include <string>

#include "coordination/coordinator.h"
#include "daemon/throttles.h"
#include "proxy/stats.h"

namespace weir {

struct DaemonStats {
  std::uint64_t reloads_ok = 0;
  std::uint64_t reloads_failed = 0;
};

// `loops` are summed up. On the daemon's thread.
std::string metrics_text(std::span<const ProxyStats* const> loops, Coordinator& coordinator,
                         const Throttles& throttles, const DaemonStats& daemon);

}  // namespace weir
