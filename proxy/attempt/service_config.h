#pragma once

// A gRPC service config (gRFC A6, A21): which calls are retried or hedged, and how. Read whole: one
// field that is wrong refuses all of it, and every such field is listed. Unknown fields are left
// alone, as A21 wants it. Constant once read; any thread.
//
// Beyond A6: `perAttemptRecvTimeout` in both policies; HTTP statuses 400 … 599 among the codes;
// `name: [{"path": "/reports/**"}]`, matched like a rule; `backoffJitter` in a retry policy
// (proportional, full, equal, decorrelated, none); and `maxAttemptsCap` beside methodConfig, which
// replaces the cap of 5 (below 2 it means 5).

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proxy/attempt/backoff.h"
#include "proxy/attempt/retry_throttle.h"
#include "proxy/attempt/status_code.h"
#include "proxy/path.h"

namespace weir {

struct RetryPolicy {
  int max_attempts = 0;  // the first included; within the cap
  BackoffOptions backoff;
  StatusSet retryable;
};

struct HedgingPolicy {
  int max_attempts = 0;
  std::chrono::nanoseconds delay{0};
  StatusSet non_fatal;
};

struct MethodConfig {
  std::variant<std::monostate, RetryPolicy, HedgingPolicy> policy;
  std::optional<std::chrono::nanoseconds> attempt_timeout;  // perAttemptRecvTimeout
  std::optional<std::chrono::nanoseconds> timeout;          // over all attempts

  const RetryPolicy* retry() const { return std::get_if<RetryPolicy>(&policy); }
  const HedgingPolicy* hedging() const { return std::get_if<HedgingPolicy>(&policy); }
};

struct ServiceConfigError {
  std::string path;  // ".methodConfig[0].retryPolicy.maxAttempts"
  std::string what;
};

class ServiceConfig {
 public:
  struct Read;
  // `json` is the text of a JSON object.
  static Read read(const std::string& json);

  // The most specific one for a path: its method, its service, the first pattern that it matches,
  // the default. By what it was named matters to who may be retried.
  enum class Named { path, by_default };
  struct Found {
    const MethodConfig* config = nullptr;  // nullptr: none
    Named named = Named::by_default;
  };
  Found find(std::string_view path) const;

  const std::optional<RetryThrottling>& throttling() const { return throttling_; }

 private:
  friend class ServiceConfigReader;

  std::vector<MethodConfig> methods_;
  // Places in methods_:
  std::map<std::string, std::size_t, std::less<>> by_path_prefix_;  // "/service/" and "/service/m"
  std::vector<std::pair<PathPattern, std::size_t>> by_pattern_;
  std::optional<std::size_t> default_;
  std::optional<RetryThrottling> throttling_;
};

struct ServiceConfig::Read {
  ServiceConfig config;
  std::vector<ServiceConfigError> errors;  // not empty: the config is of no use
};

}  // namespace weir
