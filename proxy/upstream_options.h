#pragma once

// One upstream as it is configured: its servers, and how calls to it are made, repeated and held
// back.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "proxy/rule.h"

namespace weir {

struct ServerAddress {
  std::string host;  // a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 80;
  // As a Host field has it: "a:80", "[::1]:80".
  std::string authority() const {
    const bool bracketed = host.find(':') != std::string::npos;
    return (bracketed ? "[" + host + "]" : host) + ":" + std::to_string(port);
  }
  bool operator==(const ServerAddress&) const = default;
};

struct RetryBudgetOptions {
  double percent = 20;  // of first tries, 0 … 100000
  int min_per_second = 10;
  std::chrono::milliseconds ttl{10'000};
  bool operator==(const RetryBudgetOptions&) const = default;
};

struct DynamicBucketOptions {
  bool enabled = false;
  std::chrono::milliseconds window{2'000};
  double retry_share = 0.05;
  bool operator==(const DynamicBucketOptions&) const = default;
};

struct ThrottleOptions {
  enum class Kind { off, aimd, sfq, bloom, sfb };
  enum class OnLimit { reject, wait };

  Kind kind = Kind::off;
  double initial_rate = 100;  // requests per second and bucket
  double floor = 5;
  double ceiling = 0;  // 0: none
  double increase = 1;
  double decrease = 0.7;
  int buckets = 17;
  int probes = 3;  // bloom and sfb; 1 … 8
  std::chrono::milliseconds rehash{5'000};
  std::chrono::milliseconds burst{500};
  OnLimit on_limit = OnLimit::reject;
  bool operator==(const ThrottleOptions&) const = default;
};

struct CooldownOptions {
  enum class Scope { project, global };
  struct Class {
    std::chrono::milliseconds base;
    std::chrono::milliseconds max;
    Scope scope;
  };

  bool enabled = false;
  TenantSource project{TenantSource::Kind::header, "x-project", 0};
  Class on_429{std::chrono::seconds{30}, std::chrono::minutes{10}, Scope::project};
  Class on_503{std::chrono::seconds{1}, std::chrono::minutes{10}, Scope::global};
};

struct UpstreamOptions {
  std::string name;
  std::vector<ServerAddress> servers;
  std::chrono::milliseconds connect_timeout{1'000};
  std::chrono::milliseconds response_timeout{
      60'000};                 // request sent to answer's head; longest pause in a body
  std::string service_config;  // JSON text; empty: none
  bool retry_non_idempotent = false;
  bool retries = true;
  RetryBudgetOptions retry_budget;
  DynamicBucketOptions dynamic_bucket;
  ThrottleOptions throttle;
  CooldownOptions cooldown;
};

}  // namespace weir
