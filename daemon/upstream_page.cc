#include "daemon/upstream_page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "coordination/window.h"

namespace weir {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostShown = 100;

Json cooldowns_of(const UpstreamOptions& upstream, const Cooldowns& cooldowns) {
  std::vector<CooldownView> views = cooldowns.view(upstream.name);
  std::size_t waiting = 0;
  for (const CooldownView& view : views) waiting += view.waiting;
  std::ranges::sort(views, [](const auto& a, const auto& b) {
    return std::tie(b.left, a.name) < std::tie(a.left, b.name);
  });
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

Json throttle_of(const UpstreamOptions& upstream, const UpstreamKnowledge& known, SteadyTime now) {
  Json page = throttle_entry(upstream, known.throttles, now);
  if (page.size() == 1) return page;  // off
  std::uint64_t denied = 0;
  for (const ProxyStats* loop : known.loops) {
    loop->each_upstream([&](const std::string& name, const UpstreamStats& stats) {
      if (name == upstream.name) denied += stats.throttled.value();
    });
  }
  page["denied"] = denied;
  return page;
}

Json budget_of(const UpstreamRetries& retries, SteadyTime now) {
  const UpstreamRetries::View view = retries.view(now);
  Json page{{"affordable", view.affordable}};
  if (view.bucket) {
    page["bucket"] = {{"rate", view.bucket->rate},
                      {"tokens", view.bucket->tokens},
                      {"first_tries", view.bucket->first_tries},
                      {"retries", view.bucket->retries}};
  }
  return page;
}

}  // namespace

Json throttle_entry(const UpstreamOptions& upstream, const Throttles& throttles, SteadyTime now) {
  constexpr const char* kKinds[] = {"off", "aimd", "sfq", "bloom", "sfb"};
  Json page{{"kind", kKinds[static_cast<std::size_t>(upstream.throttle.kind)]}};
  UpstreamThrottle* const throttle = throttles.find(upstream.name);
  if (!throttle) return page;
  const ThrottleFacts facts = throttle->throttle().facts(now);
  page.update({{"rate", facts.rate},
               {"buckets", facts.buckets},
               {"in_use", facts.in_use},
               {"waiting", throttle->line().waiting()},
               {"dropped", facts.dropped}});
  return page;
}

std::string upstreams_page(const std::vector<UpstreamOptions>& upstreams,
                           const UpstreamKnowledge& known, SteadyTime now) {
  Json list = Json::array();
  for (const UpstreamOptions& upstream : upstreams) {
    Json page{{"name", upstream.name}, {"throttle", throttle_of(upstream, known, now)}};
    const auto retries = known.retries.find(upstream.name);
    if (retries != known.retries.end() && retries->second) {
      page["budget"] = budget_of(*retries->second, now);
    }
    page["cooldowns"] = cooldowns_of(upstream, known.cooldowns);
    list.push_back(std::move(page));
  }
  const Json page{{"upstreams", std::move(list)}};
  return page.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace weir
