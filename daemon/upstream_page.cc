#include "daemon/upstream_page.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordination/window.h"

namespace weir {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostShown = 100;

Json cooldowns_of(const UpstreamOptions& upstream, const Cooldowns& cooldowns) {
  std::vector<CooldownView> views = cooldowns.view(upstream.name);
  std::size_t waiting = 0;
  for (const CooldownView& view : views) waiting += view.waiting;
  std::ranges::stable_sort(views, [](const auto& a, const auto& b) { return a.left > b.left; });
  Json longest = Json::array();
  for (const CooldownView& view : views) {
    if (longest.size() == kMostShown) break;
    longest.push_back({{"project", view.name.project.empty() ? "*" : view.name.project},
                       {"status", view.name.status},
                       {"failures", view.record.failures},
                       {"last", utc_text_ms(view.record.last)},
                       {"not_before", utc_text_ms(view.record.not_before)},
                       {"left_ms", view.left.count()},
                       {"waiting", view.waiting}});
  }
  return {{"enabled", upstream.cooldown.enabled},
          {"records", views.size()},
          {"waiting", waiting},
          {"longest", std::move(longest)}};
}

}  // namespace

std::string upstreams_page(const std::vector<UpstreamOptions>& upstreams,
                           const Cooldowns& cooldowns) {
  Json list = Json::array();
  for (const UpstreamOptions& upstream : upstreams) {
    list.push_back({{"name", upstream.name}, {"cooldowns", cooldowns_of(upstream, cooldowns)}});
  }
  const Json page{{"upstreams", std::move(list)}};
  return page.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace weir
