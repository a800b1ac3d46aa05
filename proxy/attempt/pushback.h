#pragma once

// What an upstream that failed a request says about trying again: grpc-retry-pushback-ms, or
// Retry-After on 429 and 503. Pure.

#include <chrono>
#include <optional>
#include <span>

#include "coordination/base/clock.h"
#include "proxy/http/field.h"

namespace weir {

struct Pushback {
  enum class Kind { none, delay, stop };
  Kind kind = Kind::none;
  std::chrono::milliseconds delay{0};  // Kind::delay: exactly that long
};

// What Retry-After says by itself; nothing: there is none, or more than one, or nobody can read it.
std::optional<std::chrono::milliseconds> read_retry_after(std::span<const http::Field> fields,
                                                          WallTime now);

// grpc-retry-pushback-ms is a 32-bit integer as one writes it; a negative one, anything else and a
// second one forbid a retry. Without that field Retry-After counts, in seconds or as a date; one
// that cannot be read is as good as none.
Pushback read_pushback(int http_status, std::span<const http::Field> fields, WallTime now);

}  // namespace weir
