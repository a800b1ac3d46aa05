#pragma once

// A configuration as JSON, for those who compare two of them and must see what /v1/config hides;
// and a rule alone.

#include <nlohmann/json_fwd.hpp>

#include "daemon/config.h"

namespace weir {

enum class Secrets { masked, shown };

nlohmann::ordered_json to_json(const Config& config, Secrets secrets);
nlohmann::ordered_json to_json(const Rule& rule);

}  // namespace weir
