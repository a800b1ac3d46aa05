#pragma once

// One run: what a seed stands for, played from beginning to end in virtual time, and judged.

#include <cstdint>
#include <optional>

#include "tests/simulation/bugs.h"
#include "tests/simulation/judge.h"
#include "tests/simulation/process.h"

namespace weir::sim {

struct Result {
  std::optional<Violation> violation;
  Reached reached;
  std::uint64_t digest = 0, revisions = 0, messages = 0;
  double virtual_seconds = 0;
};

enum class Trace { off, on };
Result simulate(std::uint64_t seed, Bug bug, Trace trace);

}  // namespace weir::sim
