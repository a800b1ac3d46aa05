#pragma once

// How much of a limit is used when there is more demand than units: several replicas at different
// distances from the store, no faults, and clients that each ask again as soon as they were served.
// In virtual time, so the use is a property of the algorithm and not of the machine.

#include <cstdint>
#include <string>
#include <vector>

#include "coordination/limit.h"
#include "tests/simulation/judge.h"
#include "tests/simulation/world.h"

namespace weir::sim {

struct UseCase {
  std::string name;
  Limit limit;
  std::vector<Duration> distances;  // of each replica from the store, one way
  int clients = 0;                  // at each replica
  Duration serving{};               // on average
  Duration lasts{};
};
// Every mode with limits on both sides of what one claim stands for.
std::vector<UseCase> use_cases();

struct Use {
  std::optional<Violation> violation;
  double used = 0;             // of the limit: of the worst window, or on average
  std::vector<double> shares;  // of what was used, by replica
  std::uint64_t requests = 0, messages = 0;
};
Use play(const UseCase& use_case, std::uint64_t seed);

// The least that must be used, and what part of its fair share every replica must get.
inline constexpr double kLeastUse = 0.99;
inline constexpr double kLeastShare = 0.5;

}  // namespace weir::sim
