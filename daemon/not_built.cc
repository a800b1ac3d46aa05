// What can be configured but is not built yet. A line goes when its feature comes.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "daemon/config_checks.h"
#include "daemon/config_json.h"

namespace weir {

namespace {

struct NotBuilt {
  std::string_view path;  // a field, or a section with all its fields
  std::string_view what;  // a value other than the default
};

constexpr NotBuilt kUpstreamFields[] = {
    {"throttle", "throttling"},
};

using Json = nlohmann::ordered_json;

void refuse_changed(const Json& value, const Json& standard, const std::string& path,
                    std::string_view what, Diagnostics& errors) {
  if (value == standard) return;
  if (!value.is_object() || path.ends_with(".service_config")) {
    errors.require(false, path, std::string(what) + " is not built into this version");
    return;
  }
  for (const auto& [name, member] : value.items()) {
    refuse_changed(member, standard.at(name), path + "." + name, what, errors);
  }
}

}  // namespace

void check_built(const Config& config, Diagnostics& errors) {
  Config standard;
  standard.upstreams.emplace_back().name = "main";
  const Json defaults = to_json(standard, Secrets::shown);
  const Json json = to_json(config, Secrets::shown);
  for (const auto& [name, upstream] : json.at("upstreams").items()) {
    for (const auto& [path, what] : kUpstreamFields) {
      refuse_changed(upstream.at(path), defaults.at("upstreams").at("main").at(path),
                     "upstreams." + printable(name) + "." + std::string(path), what, errors);
    }
  }
}

}  // namespace weir
