#pragma once

// How single values of a service config are written: proto durations, decimal numbers, status
// codes. Each function returns nothing for what it does not take. Pure.

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "proxy/attempt/status_code.h"

namespace weir {

// "1.5s": digits as a JSON number has them, at most nine behind the point, then `s`. Negative ones
// are read, for the caller to refuse.
std::optional<std::chrono::nanoseconds> read_proto_duration(const nlohmann::json& value);

// Thousandths of a number, what is behind them cut off. From its decimal text: 0.29 is 290.
std::optional<std::int64_t> read_thousandths(const nlohmann::json& value);

// A name in any case, a number 1 … 16, or an HTTP status. False: none of these.
bool add_status(const nlohmann::json& value, StatusSet& to);

}  // namespace weir
