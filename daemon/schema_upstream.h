#pragma once

// The part of the schema (schema.h) that is one upstream.

#include <chrono>

#include "daemon/values.h"
#include "proxy/throttle/tenant_hash.h"
#include "proxy/upstream_options.h"

namespace weir {

inline constexpr std::chrono::milliseconds kShortest{1};
inline constexpr std::chrono::hours kLongest{24};

void describe(auto& v, RetryBudgetOptions& budget) {
  v.field("percent", budget.percent, Number{0, 100'000});
  v.field("min_per_second", budget.min_per_second, Integer{0, 1'000'000});
  v.field("ttl", budget.ttl, Duration{std::chrono::seconds{1}, std::chrono::seconds{60}});
}

void describe(auto& v, DynamicBucketOptions& bucket) {
  v.field("enabled", bucket.enabled, Flag{});
  v.field("window", bucket.window, Duration{kShortest, kLongest});
  v.field("retry_share", bucket.retry_share, Number{0, 1});
}

void describe(auto& v, ThrottleOptions& throttle) {
  v.field("kind", throttle.kind, Choice{"off", "aimd", "sfq", "bloom", "sfb"});
  v.field("initial_rate", throttle.initial_rate, Number{0, 1e9});
  v.field("floor", throttle.floor, Number{0, 1e9});
  v.field("ceiling", throttle.ceiling, Number{0, 1e9});
  v.field("increase", throttle.increase, Number{0, 1e9, Number::Ends::excluded});
  v.field("decrease", throttle.decrease, Number{0, 1, Number::Ends::excluded});
  v.field("buckets", throttle.buckets, Integer{1, 65'536});
  v.field("probes", throttle.probes, Integer{1, kMaxProbes});
  v.field("rehash", throttle.rehash, Duration{kShortest, kLongest});
  v.field("burst", throttle.burst, Duration{kShortest, kLongest});
  v.field("on_limit", throttle.on_limit, Choice{"reject", "wait"});
}

void describe(auto& v, CooldownOptions::Class& answers) {
  v.field("base", answers.base, Duration{kShortest, kLongest});
  v.field("max", answers.max, Duration{kShortest, kLongest});
  v.field("scope", answers.scope, Choice{"project", "global"});
}

void describe(auto& v, CooldownOptions& cooldown) {
  v.field("enabled", cooldown.enabled, Flag{});
  v.field("project", cooldown.project, WhoAsks{});
  v.section("on_429", cooldown.on_429);
  v.section("on_503", cooldown.on_503);
}

void describe(auto& v, UpstreamOptions& upstream) {
  v.list("servers", upstream.servers, ServerUrl{});
  v.field("connect_timeout", upstream.connect_timeout, Duration{kShortest, kLongest});
  v.field("response_timeout", upstream.response_timeout, Duration{kShortest, kLongest});
  v.document("service_config", upstream.service_config);
  v.field("retry_non_idempotent", upstream.retry_non_idempotent, Flag{});
  v.field("retries", upstream.retries, Flag{});
  v.section("retry_budget", upstream.retry_budget);
  v.section("dynamic_bucket", upstream.dynamic_bucket);
  v.section("throttle", upstream.throttle);
  v.section("cooldown", upstream.cooldown);
}

}  // namespace weir
