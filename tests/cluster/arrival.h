#pragma once

// What an upstream saw of one request. Both kinds of time are of the one machine that it runs on.

#include <chrono>
#include <optional>
#include <string>

#include "tests/support/socket.h"

namespace weir::test {

using WallInstant = std::chrono::system_clock::time_point;

struct Arrival {
  std::string path;     // without the query
  std::string replica;  // the query: whom the load asked
  Instant at;
  WallInstant wall;
  std::optional<Instant> ended;  // answered, or the replica has left
};

}  // namespace weir::test
