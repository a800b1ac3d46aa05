#include "proxy/stats.h"

namespace weir {

std::string_view to_string(Ending ending) {
  switch (ending) {
    case Ending::ok:
      return "ok";
    case Ending::shadow_denied:
      return "shadow_denied";
    case Ending::client_gone:
      return "client_gone";
    case Ending::malformed:
      return "malformed";
    case Ending::limit:
      return "limit";
    case Ending::store_unavailable:
      return "store_unavailable";
    case Ending::queue_full:
      return "queue_full";
    case Ending::draining:
      return "draining";
    case Ending::upstream_unreachable:
      return "upstream_unreachable";
    case Ending::upstream_failed:
      return "upstream_failed";
    case Ending::upstream_timeout:
      return "upstream_timeout";
    case Ending::deadline:
      return "deadline";
    case Ending::cooldown:
      return "cooldown";
    case Ending::throttled:
      return "throttled";
  }
  return "";
}

namespace {

template <class Stats>
Stats& find(std::map<std::string, std::unique_ptr<Stats>>& map, const std::string& name) {
  auto& entry = map[name];
  if (!entry) entry = std::make_unique<Stats>();
  return *entry;
}

}  // namespace

RuleStats& ProxyStats::rule(const std::string& name) {
  std::lock_guard lock(mutex_);
  return find(rules_, name);
}

UpstreamStats& ProxyStats::upstream(const std::string& name) {
  std::lock_guard lock(mutex_);
  return find(upstreams_, name);
}

}  // namespace weir
