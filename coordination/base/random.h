#pragma once

// Random numbers, as everything but the process itself sees them: the daemon passes a generator
// that was seeded by the system, tests and the simulation one that they seed themselves.

#include <cstdint>

namespace weir {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;  // any of the 64-bit numbers

  // In [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  // In [0, 1).
  double fraction() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
};

}  // namespace weir
