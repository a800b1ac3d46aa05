#include "proxy/attempt/service_config.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "proxy/attempt/config_values.h"

namespace weir {
namespace {

using Json = nlohmann::json;
using std::chrono::nanoseconds;

constexpr int kDefaultCap = 5;
constexpr std::int64_t kMostMilliTokens = 1'000'000;

std::string at(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

}  // namespace

class ServiceConfigReader {
 public:
  explicit ServiceConfigReader(ServiceConfig::Read& into)
      : config_(into.config), errors_(into.errors) {}

  void read(const Json& json) {
    if (!json.is_object()) return fail("", "must be an object");
    if (const Json* cap = find(json, "maxAttemptsCap")) read_cap(*cap);
    // Checked whether or not there is a method: a mistake in it must not wait until there is one.
    if (const Json* throttling = find(json, "retryThrottling")) read_throttling(*throttling);
    const Json* methods = find(json, "methodConfig");
    if (!methods) return;
    if (!methods->is_array()) return fail(".methodConfig", "must be a list");
    for (std::size_t i = 0; i < methods->size(); ++i) {
      read_method((*methods)[i], at(".methodConfig", i));
    }
  }

 private:
  static const Json* find(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
  }

  void fail(const std::string& path, const std::string& what) { errors_.push_back({path, what}); }

  void read_cap(const Json& value) {
    if (!value.is_number_integer()) return fail(".maxAttemptsCap", "must be a whole number");
    const auto cap = value.get<std::int64_t>();
    cap_ = cap < 2 ? kDefaultCap : static_cast<int>(std::min<std::int64_t>(cap, 1'000));
  }

  void read_throttling(const Json& value) {
    const std::string path = ".retryThrottling";
    if (!value.is_object()) return fail(path, "must be an object");
    RetryThrottling throttling;
    throttling.max_milli = read_tokens(value, "maxTokens", path, kMostMilliTokens,
                                       "must be a number above 0 and up to 1000");
    throttling.ratio_milli =
        read_tokens(value, "tokenRatio", path, 1'000'000'000, "must be a number of at least 0.001");
    config_.throttling_ = throttling;
  }

  int read_tokens(const Json& object, const char* name, const std::string& path, std::int64_t most,
                  const char* wanted) {
    const Json* value = find(object, name);
    const auto milli = value ? read_thousandths(*value) : std::nullopt;
    // What is behind the thousandths is cut off below, but must not go beyond the end either.
    const bool beyond = milli && value->get<double>() * 1000 > static_cast<double>(most);
    if (milli && *milli > 0 && !beyond) return static_cast<int>(*milli);
    fail(path + "." + name, wanted);
    return 0;
  }

  void read_method(const Json& value, const std::string& path) {
    if (!value.is_object()) return fail(path, "must be an object");
    MethodConfig method;
    if (const Json* timeout = find(value, "timeout")) {
      method.timeout = read_duration(*timeout, path + ".timeout");
    }
    const Json* retry = find(value, "retryPolicy");
    const Json* hedging = find(value, "hedgingPolicy");
    if (retry && hedging) {
      fail(path, "retryPolicy and hedgingPolicy exclude each other");
    }
    if (retry) read_retry(*retry, path + ".retryPolicy", method);
    if (hedging) read_hedging(*hedging, path + ".hedgingPolicy", method);
    const Json* names = find(value, "name");
    if (!names || names->is_null()) return;  // for nobody
    if (!names->is_array()) return fail(path + ".name", "must be a list");
    for (std::size_t i = 0; i < names->size(); ++i) {
      read_name((*names)[i], at(path + ".name", i));
    }
    config_.methods_.push_back(method);
  }

  void read_retry(const Json& value, const std::string& path, MethodConfig& method) {
    if (!value.is_object()) return fail(path, "must be an object");
    RetryPolicy policy;
    policy.max_attempts = read_attempts(value, path);
    policy.backoff.initial = need_duration(value, "initialBackoff", path);
    policy.backoff.max = need_duration(value, "maxBackoff", path);
    const Json* multiplier = find(value, "backoffMultiplier");
    if (multiplier && multiplier->is_number() && multiplier->get<double>() > 0 &&
        std::isfinite(multiplier->get<double>())) {
      policy.backoff.multiplier = multiplier->get<double>();
    } else {
      fail(path + ".backoffMultiplier", "must be a number above 0");
    }
    if (const Json* jitter = find(value, "backoffJitter")) {
      policy.backoff.jitter = read_jitter(*jitter, path + ".backoffJitter");
    }
    read_attempt_timeout(value, path, method);
    const Json* codes = find(value, "retryableStatusCodes");
    if (codes) read_codes(*codes, path + ".retryableStatusCodes", policy.retryable);
    // A timeout per attempt is something to retry by itself.
    const bool listed = codes && (!codes->is_array() || !codes->empty());
    if (!listed && !method.attempt_timeout) {
      fail(path + ".retryableStatusCodes", "at least one is needed");
    }
    method.policy = policy;
  }

  void read_hedging(const Json& value, const std::string& path, MethodConfig& method) {
    if (!value.is_object()) return fail(path, "must be an object");
    HedgingPolicy policy;
    policy.max_attempts = read_attempts(value, path);
    if (const Json* delay = find(value, "hedgingDelay")) {
      const auto duration = read_proto_duration(*delay);
      if (duration && *duration >= nanoseconds{0}) {
        policy.delay = *duration;
      } else {
        fail(path + ".hedgingDelay", "must be a duration as in \"0.5s\", not negative");
      }
    }
    read_attempt_timeout(value, path, method);
    if (const Json* codes = find(value, "nonFatalStatusCodes")) {
      read_codes(*codes, path + ".nonFatalStatusCodes", policy.non_fatal);
    }
    method.policy = policy;
  }

  int read_attempts(const Json& policy, const std::string& path) {
    const Json* value = find(policy, "maxAttempts");
    if (!value || !value->is_number_integer() || value->get<std::int64_t>() < 2) {
      fail(path + ".maxAttempts", "must be a whole number of at least 2");
      return 0;
    }
    return static_cast<int>(std::min<std::int64_t>(value->get<std::int64_t>(), cap_));
  }

  void read_attempt_timeout(const Json& policy, const std::string& path, MethodConfig& method) {
    if (const Json* timeout = find(policy, "perAttemptRecvTimeout")) {
      method.attempt_timeout = read_duration(*timeout, path + ".perAttemptRecvTimeout");
    }
  }

  nanoseconds need_duration(const Json& object, const char* name, const std::string& path) {
    const Json* value = find(object, name);
    return read_duration(value ? *value : Json{}, path + "." + name);
  }

  nanoseconds read_duration(const Json& value, const std::string& path) {
    const auto duration = read_proto_duration(value);
    if (duration && *duration > nanoseconds{0}) return *duration;
    fail(path, "must be a duration above 0 as in \"0.5s\"");
    return nanoseconds{1};
  }

  Jitter read_jitter(const Json& value, const std::string& path) {
    constexpr std::pair<const char*, Jitter> kKinds[] = {{"proportional", Jitter::proportional},
                                                         {"full", Jitter::full},
                                                         {"equal", Jitter::equal},
                                                         {"decorrelated", Jitter::decorrelated},
                                                         {"none", Jitter::none}};
    for (const auto& [name, jitter] : kKinds) {
      if (value == name) return jitter;
    }
    fail(path, "must be proportional, full, equal, decorrelated or none");
    return {};
  }

  void read_codes(const Json& value, const std::string& path, StatusSet& codes) {
    if (!value.is_array()) return fail(path, "must be a list");
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (add_status(value[i], codes)) continue;
      fail(at(path, i), "must be a gRPC status other than OK, by name or number, or 400 to 599");
    }
  }

  void read_name(const Json& value, const std::string& path) {
    if (!value.is_object()) return fail(path, "must be an object");
    const std::string service = read_text(value, "service", path);
    const std::string method = read_text(value, "method", path);
    const std::string pattern = read_text(value, "path", path);
    if (service.empty() && !method.empty()) return fail(path + ".service", "a method needs one");
    if (!pattern.empty() && !service.empty()) {
      return fail(path + ".path", "excludes a service");
    }
    if (!names_.insert(service + "/" + method + "/" + pattern).second) {
      return fail(path, "this name is given already");
    }
    const std::size_t place = config_.methods_.size();
    if (!pattern.empty()) {
      read_pattern(pattern, path + ".path", place);
    } else if (service.empty()) {
      config_.default_ = place;
    } else {
      config_.by_path_prefix_["/" + service + "/" + method] = place;
    }
  }

  std::string read_text(const Json& object, const char* name, const std::string& path) {
    const Json* value = find(object, name);
    if (!value || value->is_null()) return {};
    if (value->is_string()) return value->get<std::string>();
    fail(path + "." + name, "must be text");
    return {};
  }

  void read_pattern(const std::string& pattern, const std::string& path, std::size_t place) {
    if (const std::string problem = check_pattern(pattern); !problem.empty()) {
      return fail(path, problem);
    }
    config_.by_pattern_.emplace_back(PathPattern{pattern}, place);
  }

  ServiceConfig& config_;
  std::vector<ServiceConfigError>& errors_;
  int cap_ = kDefaultCap;
  std::set<std::string> names_;
};

ServiceConfig::Read ServiceConfig::read(const std::string& json) {
  Read result;
  const Json parsed = Json::parse(json, nullptr, false);
  ServiceConfigReader{result}.read(parsed);
  return result;
}

ServiceConfig::Found ServiceConfig::find(std::string_view path) const {
  if (!by_path_prefix_.empty()) {
    auto found = by_path_prefix_.find(path);
    const std::size_t slash = path.rfind('/');
    if (found == by_path_prefix_.end() && slash != std::string_view::npos) {
      found = by_path_prefix_.find(path.substr(0, slash + 1));
    }
    if (found != by_path_prefix_.end()) return {&methods_[found->second], Named::path};
  }
  for (const auto& [pattern, place] : by_pattern_) {
    if (pattern.matches(path)) return {&methods_[place], Named::path};
  }
  if (default_) return {&methods_[*default_], Named::by_default};
  return {};
}

}  // namespace weir
