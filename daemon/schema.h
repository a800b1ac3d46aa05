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
#include "daemon/schema_upstream.h"
#include "daemon/text_checks.h"
#include "daemon/values.h"

namespace weir {

// A rule without what only a listed one has: name and match.
struct RuleBody {
  Rule& rule;
};

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
