#pragma once

// Every field of the configuration, once: its name, where it is kept and which values it takes. A
// visitor reads all of them (yaml_reader.h), writes them (config_json.cc) or does what comes next:
//
//   field(name, value, kind)      one value
//   list(name, values, kind)      a list of values
//   section(name, part)           a map with a description of its own
//   sections(name, parts)         a list of such maps; one_or_more() also takes the map alone
//   named(name, parts)            a map of such maps, each under its `name`
//   document(name, text)          a map without a fixed shape, kept as JSON; or a file that has one
//
// What one field allows depending on another is in config_checks.cc.

#include "daemon/config.h"
#include "daemon/text_checks.h"
#include "daemon/values.h"

namespace weir {

// A rule without what only a listed one has: name and match.
struct RuleBody {
  Rule& rule;
};

inline constexpr std::chrono::milliseconds kShortest{1};
inline constexpr std::chrono::hours kLongest{24};

void describe(auto& v, LogOptions& log) {
  v.field("level", log.level, Choice{"trace", "debug", "info", "warn", "error", "off"});
  v.field("format", log.format, Choice{"text", "json"});
  v.field("access", log.access, Flag{});
}

void describe(auto& v, http::Limits& limits) {
  v.field("header_bytes", limits.header_bytes, Integer{1024, 16 << 20});
  v.field("header_fields", limits.header_fields, Integer{1, 100'000});
  v.field("target_bytes", limits.target_bytes, Integer{64, 16 << 20});
  v.field("connections", limits.connections, Integer{1, 10'000'000});
}

void describe(auto& v, http::Timeouts& timeouts) {
  v.field("header", timeouts.header, Duration{kShortest, kLongest});
  v.field("body_idle", timeouts.body_idle, Duration{kShortest, kLongest});
  v.field("idle", timeouts.idle, Duration{kShortest, kLongest});
}

struct TlsFiles {
  EtcdOptions& etcd;
};

void describe(auto& v, TlsFiles tls) {
  v.field("ca", tls.etcd.tls_ca, Text{check_printable});
  v.field("cert", tls.etcd.tls_cert, Text{check_printable});
  v.field("key", tls.etcd.tls_key, Text{check_printable});
}

void describe(auto& v, EtcdOptions& etcd) {
  v.list("endpoints", etcd.endpoints, Text{check_etcd_endpoint});
  v.field("prefix", etcd.prefix, Text{check_key_prefix});
  v.field("timeout", etcd.timeout, Duration{kShortest, kLongest});
  v.field("username", etcd.username, Text{check_printable});
  v.field("password_file", etcd.password_file, Text{check_printable});
  v.section("tls", TlsFiles{etcd});
}

void describe(auto& v, CoordinationOptions& coordination) {
  v.field("kind", coordination.kind, Choice{"embedded", "etcd"});
  v.field("replicas", coordination.replicas, Integer{1, 10'000});
  v.field("replica_index", coordination.replica_index, Integer{0, 9'999});
  v.section("etcd", coordination.etcd);
  v.field("on_store_failure", coordination.on_store_failure, Choice{"reject", "share", "allow"});
}

void describe(auto& v, Match& match) {
  v.field("path", match.path, Text{check_path_pattern});
  v.list("methods", match.methods, Text{check_method});
  v.field("host", match.host, Text{check_match_host});
}

void describe(auto& v, RuleBody body) {
  Limit& limit = body.rule.limit;
  v.field("resource", body.rule.resource, Text{check_resource});
  v.field("limit", limit.units, Integer{1, 1'000'000'000});
  v.field("window", limit.window, WholeSeconds{std::chrono::seconds{1}, kLongest});
  v.field("mode", limit.mode, Choice{"started", "sliding", "in_flight", "until_done"});
  v.field("wait", limit.wait, Patience{kLongest});
  v.field("queue", limit.queue, Choice{"fifo", "fair"});
  v.field("shadow", limit.shadow, Flag{});
  v.field("unlimited", limit.unlimited, Flag{});
  v.field("upstream", body.rule.upstream, Text{check_name});
}

void describe(auto& v, Rule& rule) {
  v.field("name", rule.name, Text{check_name});
  v.one_or_more("match", rule.matches);
  describe(v, RuleBody{rule});
}

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
  v.field("probes", throttle.probes, Integer{1, 65'536});
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

void describe(auto& v, Config& config) {
  v.field("listen", config.listen, HostPort{});
  v.field("admin", config.admin, HostPort{});
  v.field("workers", config.workers, Integer{0, 1024});
  v.field("drain_timeout", config.drain_timeout, Duration{std::chrono::milliseconds{0}, kLongest});
  v.field("headers", config.headers, Choice{"ietf", "legacy", "off"});
  v.field("escaped_slashes", config.escaped_slashes, Choice{"reject", "keep"});
  v.list("trusted_proxies", config.trusted_proxies, Text{check_cidr});
  v.section("log", config.log);
  v.section("limits", config.limits);
  v.section("timeouts", config.timeouts);
  v.field("replica", config.replica, Text{check_replica_name});
  v.section("coordination", config.coordination);
  v.field("max_resources", config.max_resources, Integer{1, 1'000'000'000});
  v.field("max_waiting", config.max_waiting, Integer{1, 1'000'000'000});
  v.sections("rules", config.rules);
  v.section("default", RuleBody{config.default_rule});
  v.field("tenant", config.tenant, WhoAsks{});
  v.named("upstreams", config.upstreams);
}

}  // namespace weir
