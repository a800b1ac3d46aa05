#pragma once

// /v1/upstreams: how each upstream is faring. A pure function of what it is given.

#include <string>
#include <vector>

#include "daemon/cooldowns.h"
#include "proxy/upstream_options.h"

namespace weir {

// {"upstreams":[{"name":…,"cooldowns":{"enabled":…,"records":N,"waiting":N,"longest":[…]}}]}; of
// the records those that last longest, at most 100.
std::string upstreams_page(const std::vector<UpstreamOptions>& upstreams,
                           const Cooldowns& cooldowns);

}  // namespace weir
