#include "daemon/config_checks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "proxy/attempt/service_config.h"

namespace weir {

namespace {

std::string rule_path(std::size_t index) { return "rules[" + std::to_string(index) + "]"; }

void check_coordination(const CoordinationOptions& coordination, Diagnostics& errors) {
  errors.require(
      coordination.replica_index < coordination.replicas || !errors.good("coordination.replicas"),
      "coordination.replica_index",
      "must be below replicas, which is " + std::to_string(coordination.replicas));
  errors.require(!coordination.etcd.endpoints.empty(), "coordination.etcd.endpoints",
                 "at least one is needed");
}

void check_upstream_of(const Rule& rule, const std::string& path, const Config& config,
                       Diagnostics& errors) {
  const auto exists = std::ranges::find(config.upstreams, rule.upstream, &UpstreamOptions::name);
  if (config.upstreams.empty() || exists != config.upstreams.end()) return;
  errors.refuse(path + ".upstream",
                errors.given(path + ".upstream")
                    ? "there is no upstream " + quote(rule.upstream)
                    : "must be given, as there are several upstreams and none is main");
}

void check_limit(const Limit& limit, const std::string& path, const Config& config,
                 Diagnostics& errors) {
  if (limit.mode == Mode::in_flight && errors.given(path + ".window")) {
    errors.refuse(path + ".window", "has no meaning with mode in_flight");
  }
  const CoordinationOptions& coordination = config.coordination;
  if (limit.unlimited || coordination.kind != CoordinationOptions::Kind::embedded ||
      coordination.replica_index >= coordination.replicas) {
    return;
  }
  const std::int64_t share =
      share_of(limit.units, coordination.replicas, coordination.replica_index);
  if (share > 0) return;
  errors.refuse(path + ".limit", std::to_string(limit.units) + " among " +
                                     std::to_string(coordination.replicas) +
                                     " replicas leaves replica_index " +
                                     std::to_string(coordination.replica_index) + " nothing");
}

void check_rule(const Rule& rule, const std::string& path, const Config& config,
                Diagnostics& errors) {
  check_upstream_of(rule, path, config, errors);
  check_limit(rule.limit, path, config, errors);
}

using Seen = std::map<std::string_view, std::size_t>;  // names of rules, with the first of each

std::string problem_of_name(const std::string& name, std::size_t rule, Seen& seen) {
  if (name.empty()) return "every rule needs one";
  if (name == "default") return "default is taken: it is what no rule matches";
  const auto [first, fresh] = seen.try_emplace(name, rule);
  if (fresh) return "";
  return quote(name) + " is the name of " + rule_path(first->second) + " already";
}

void check_rules(const Config& config, Diagnostics& errors) {
  Seen seen;
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    const Rule& rule = config.rules[i];
    std::string path = rule_path(i);
    check_rule(rule, path, config, errors);
    const std::string problem = problem_of_name(rule.name, i, seen);
    if (!problem.empty()) errors.refuse(path + ".name", problem);
  }
  check_rule(config.default_rule, "default", config, errors);
}

std::string upstream_path(const UpstreamOptions& upstream) {
  return "upstreams." + printable(upstream.name);
}

std::string throttle_path(const UpstreamOptions& upstream) {
  return upstream_path(upstream) + ".throttle";
}

void check_throttle(const ThrottleOptions& throttle, const std::string& path, Diagnostics& errors) {
  if (!errors.good(path)) return;
  errors.require(throttle.floor <= throttle.initial_rate, path + ".floor",
                 "must not be above initial_rate");
  errors.require(throttle.ceiling == 0 || throttle.initial_rate <= throttle.ceiling,
                 path + ".ceiling", "must be 0 (none) or not below initial_rate");
  const bool probed =
      throttle.kind == ThrottleOptions::Kind::bloom || throttle.kind == ThrottleOptions::Kind::sfb;
  errors.require(!probed || throttle.probes <= throttle.buckets, path + ".probes",
                 "must not be above buckets");
}

void check_cooldown(const CooldownOptions::Class& answers, const std::string& path,
                    Diagnostics& errors) {
  errors.require(answers.base <= answers.max || !errors.good(path + ".base"), path + ".max",
                 "must not be below base");
}

void check_service_config(const std::string& json, const std::string& path, Diagnostics& errors) {
  if (json.empty() || !errors.good(path)) return;
  for (const ServiceConfigError& error : ServiceConfig::read(json).errors) {
    errors.fail(path + error.path, error.what);
  }
}

void check_upstreams(const Config& config, Diagnostics& errors) {
  errors.require(!config.upstreams.empty(), "upstreams", "at least one is needed");
  for (const UpstreamOptions& upstream : config.upstreams) {
    std::string path = upstream_path(upstream);
    errors.require(!upstream.servers.empty() || !errors.good(path + ".servers"), path + ".servers",
                   "at least one is needed");
    check_service_config(upstream.service_config, path + ".service_config", errors);
    check_throttle(upstream.throttle, throttle_path(upstream), errors);
    check_cooldown(upstream.cooldown.on_429, path + ".cooldown.on_429", errors);
    check_cooldown(upstream.cooldown.on_503, path + ".cooldown.on_503", errors);
  }
}

void resolve_upstream(Rule& rule, const std::string& path, const Config& config,
                      const Diagnostics& diagnostics) {
  if (config.upstreams.size() != 1 || rule.upstream == config.upstreams.front().name) return;
  if (!diagnostics.given(path + ".upstream")) rule.upstream = config.upstreams.front().name;
}

// It takes sfb some 20 s to be sure of a tenant, and a rehash before that makes it begin anew.
void resolve_rehash(ThrottleOptions& throttle, const std::string& path,
                    const Diagnostics& diagnostics) {
  if (throttle.kind == ThrottleOptions::Kind::sfb && !diagnostics.given(path + ".rehash")) {
    throttle.rehash = std::chrono::seconds{60};
  }
}

}  // namespace

void resolve_defaults(Config& config, const Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    resolve_upstream(config.rules[i], rule_path(i), config, diagnostics);
  }
  resolve_upstream(config.default_rule, "default", config, diagnostics);
  for (UpstreamOptions& upstream : config.upstreams) {
    resolve_rehash(upstream.throttle, throttle_path(upstream), diagnostics);
  }
}

void check_config(const Config& config, Diagnostics& errors) {
  errors.require(config.limits.target_bytes <= config.limits.header_bytes ||
                     !errors.good("limits.header_bytes"),
                 "limits.target_bytes", "must not be above header_bytes");
  check_coordination(config.coordination, errors);
  check_rules(config, errors);
  check_upstreams(config, errors);
}

}  // namespace weir
