#include "daemon/explain_page.h"

#include <nlohmann/json.hpp>

#include "coordination/window.h"
#include "daemon/config_json.h"
#include "daemon/resource_pages.h"
#include "daemon/upstream_page.h"

namespace weir {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::ceil;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

Json request_json(const Question& question) {
  return {{"method", question.method},
          {"target", question.target},
          {"host", question.host},
          {"peer", question.client.text()}};
}

// For a request that the rules are never asked about.
Json refusal_json(const http::LocalReply& refusal) {
  const std::string reason{reason_of(refusal.denial)};
  return {{"what", "refuse"},
          {"status", status_of(refusal.denial)},
          {"reason", reason},
          {"text", "is turned away: " + reason + ", " + refusal.detail}};
}

Json prospect_json(const Prospect& prospect, WallTime now) {
  Json json{{"what", std::string{to_string(prospect.what)}}};
  if (prospect.reason) json["reason"] = std::string{reason_of(*prospect.reason)};
  if (prospect.what == Prospect::What::refuse) {
    json["status"] = status_of(*prospect.reason);
    json["after_ms"] = prospect.patience.count();
  }
  if (prospect.what == Prospect::What::wait) {
    json["not_before"] =
        prospect.not_before ? Json(utc_text_ms(*prospect.not_before)) : Json(nullptr);
    json["wait_ms"] = prospect.not_before
                          ? Json(ceil<milliseconds>(*prospect.not_before - now).count())
                          : Json(nullptr);
    json["ahead"] = prospect.ahead;
  }
  json["text"] = in_words(prospect);
  return json;
}

Json rule_json(const Placement& placed, const Routes& routes) {
  Json passed = Json::array();
  for (const PassedOver& over : placed.passed_over) {
    Json failed = Json::array();
    for (const MatchPart part : over.failed) failed.push_back(std::string{to_string(part)});
    passed.push_back({{"name", over.rule}, {"differs", std::move(failed)}});
  }
  return {{"name", routes.rule(placed.rule).name}, {"passed_over", std::move(passed)}};
}

// The rule's settings in the configuration's own words.
Json limit_json(const Rule& rule) {
  const Json one = to_json(rule);
  Json json = Json::object();
  for (const char* name : {"limit", "window", "mode", "wait", "queue", "shadow", "unlimited"}) {
    if (one.contains(name)) json[name] = one.at(name);
  }
  return json;
}

Json usage_json(const UnitFacts& facts, const std::optional<Coordinator::Claims>& claims,
                WallTime now) {
  if (facts.limit.unlimited) return nullptr;
  const Usage usage = usage_of(facts, now);
  Json json{{"used", usage.used},
            {"of", facts.units},
            {"left", usage.left},
            {"in_hand", usage.in_hand},
            {"waiting", usage.waiting}};
  if (aligned(facts.limit.mode)) {
    json["window"] = utc_text(window_at(now, facts.limit.window).start);
  }
  json["next_free"] = usage.more_at ? Json(utc_text_ms(*usage.more_at)) : Json(nullptr);
  json["claims"] = claims ? Json(*claims) : Json(nullptr);
  return json;
}

Json cooldown_json(const UpstreamOptions& upstream, const std::string& project,
                   const Cooldown::Verdict& verdict, const Instant& now) {
  if (!upstream.cooldown.enabled) return {{"enabled", false}};
  using Kind = Cooldown::Verdict::Kind;
  Json json{{"enabled", true}, {"project", project}, {"held", verdict.kind == Kind::held}};
  if (verdict.kind != Kind::held) return json;
  const bool probing = verdict.behind_probe;
  json["probing"] = probing;
  if (!probing) {
    json["not_before"] = utc_text_ms(now.wall + (verdict.until - now.steady));
    json["left_ms"] = ceil<milliseconds>(verdict.until - now.steady).count();
  }
  return json;
}

std::int64_t ms(std::chrono::nanoseconds time) { return duration_cast<milliseconds>(time).count(); }

// Why there is no policy though there might be one.
std::string no_policy(const UpstreamRetries* retries, const UpstreamOptions& upstream,
                      const Placement& placed) {
  if (!retries) return "the upstream has no service_config";
  if (!upstream.retries) return "retries: false";
  const CallPolicy other = retries->policy_for("GET", placed.counted);
  if (!other.retry && !other.hedging) return "no policy for this path";
  return placed.method + " is repeated only where a policy names its path";
}

Json retries_json(const UpstreamRetries* retries, const UpstreamOptions& upstream,
                  const Placement& placed, SteadyTime now) {
  const CallPolicy call =
      retries ? retries->policy_for(placed.method, placed.counted) : CallPolicy{};
  Json json{{"policy", call.retry ? "retry" : call.hedging ? "hedging" : "none"}};
  if (call.retry) {
    json["max_attempts"] = call.retry->max_attempts;
    json["initial_backoff_ms"] = ms(call.retry->backoff.initial);
    json["max_backoff_ms"] = ms(call.retry->backoff.max);
    json["codes"] = call.retry->retryable.names();
  } else if (call.hedging) {
    json["max_attempts"] = call.hedging->max_attempts;
    json["delay_ms"] = ms(call.hedging->delay);
    json["non_fatal_codes"] = call.hedging->non_fatal.names();
  } else {
    json["because"] = no_policy(retries, upstream, placed);
  }
  if (call.attempt_timeout) json["attempt_timeout_ms"] = ms(*call.attempt_timeout);
  if (call.timeout) json["timeout_ms"] = ms(*call.timeout);
  if (!call.retry && !call.hedging) return json;
  const UpstreamRetries::View view = retries->view(now);
  json["budget"] = view.affordable;
  if (view.bucket) json["bucket_rate"] = view.bucket->rate;
  if (retries->throttle()) json["throttled"] = !retries->throttle()->enough();
  return json;
}

std::string text_of(const Json& json) {  // names come from clients, and may be any bytes
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

UnitFacts ExplainPage::look_up(const Rule& rule, const std::string& resource) {
  Coordinator& coordinator = coordination_.coordinator();
  UnitFacts facts{.limit = rule.limit};
  facts.store_needed = on_store_failure_ == OnStoreFailure::reject;
  facts.counted_here = coordinator.counts_here(rule.limit.mode);
  const Policy& policy = coordinator.policy(rule.name);
  facts.units = policy.limit().units;
  if (const auto found = coordinator.resources().peek(policy, resource)) {
    facts.known = true;
    facts.summary = found->allowance()->summary();
  }
  return facts;
}

http::Task<std::string> ExplainPage::page(Question question, InEffect in_effect) {
  const Settings& settings = *in_effect.settings;
  const Routes& routes = *settings.routes;
  const TrustedProxies trusted(settings.trusted_proxies);
  const Placement placed = place(
      question, {routes, trusted, settings.upstreams, settings.escaped_slashes, in_effect.limits});
  Json json{{"request", request_json(question)}};
  if (placed.refusal) {
    json["prospect"] = refusal_json(*placed.refusal);
    co_return text_of(json);
  }
  const Rule& rule = routes.rule(placed.rule);
  Coordinator& coordinator = coordination_.coordinator();
  std::optional<Coordinator::Claims> claims;
  if (!rule.limit.unlimited) {
    claims =
        co_await claims_of(loop_, coordination_, coordinator.policy(rule.name), placed.resource);
  }
  ProspectFacts facts{.units = look_up(rule, placed.resource), .cooldown = {}};
  if (claims) {
    facts.units.claimed = 0;
    for (const auto& [replica, units] : *claims) *facts.units.claimed += units;
  }
  const Instant now = loop_.clock().now();
  const UpstreamOptions& upstream = *placed.upstream;
  if (const auto gate = cooldowns_.gate(upstream.name); gate && upstream.cooldown.enabled) {
    facts.cooldown = gate->foresee(placed.project, now.steady);
  }
  UpstreamThrottle* const throttle = throttles_.find(upstream.name);
  if (throttle) facts.before_throttle = throttle->line().waiting_before(placed.tenant);
  facts.draining = in_effect.draining;
  facts.room_full = coordinator.room().waiting >= coordinator.room().max;
  const auto index = static_cast<std::size_t>(&upstream - settings.upstreams.data());
  json["prospect"] = prospect_json(foresee(facts, now), now.wall);
  json["path"] = {{"counted", placed.counted}, {"forwarded", placed.forward}};
  json["rule"] = rule_json(placed, routes);
  json["resource"] = placed.resource;
  json["tenant"] = placed.tenant;
  json["client"] = placed.client;
  json["limit"] = limit_json(rule);
  json["usage"] = usage_json(facts.units, claims, now.wall);
  json["upstream"] = {
      {"name", upstream.name},
      {"cooldown", cooldown_json(upstream, placed.project, facts.cooldown, now)},
      {"throttle", throttle_entry(upstream, throttles_, now.steady)},
      {"retries", retries_json(settings.retries[index].get(), upstream, placed, now.steady)}};
  co_return text_of(json);
}

}  // namespace weir
