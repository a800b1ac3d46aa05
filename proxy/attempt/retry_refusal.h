#pragma once

// Why no further attempt was made for a request that would have had one.

#include <cstddef>
#include <string_view>

namespace weir {

enum class RetryRefusal { none, throttle, budget, unit, attempts, committed, pushback };
inline constexpr std::size_t kRetryRefusals = 7;

constexpr std::string_view to_string(RetryRefusal refusal) {
  constexpr std::string_view kNames[] = {"",         "throttle",  "budget",  "unit",
                                         "attempts", "committed", "pushback"};
  return kNames[static_cast<std::size_t>(refusal)];
}

}  // namespace weir
