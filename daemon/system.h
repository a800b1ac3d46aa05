#pragma once

// The process's own clock and random numbers. The only file in which these are read; everything
// else gets them passed. Also what the system calls and allows this process.

#include <cstddef>
#include <random>
#include <string>

#include "coordination/base/clock.h"
#include "coordination/base/random.h"

namespace weir {

class SystemClock final : public Clock {
 public:
  SteadyTime steady_now() const override;
  WallTime wall_now() const override;
};

// Seeded by the system. One thread.
class SystemRandom final : public Random {
 public:
  SystemRandom();
  std::uint64_t next() override;

 private:
  std::mt19937_64 engine_;
};

// Lets this process have as many files open as it may ask for, and says how many that are.
std::size_t raise_open_files();

// hostname-pid: the name of a replica that was given none.
std::string default_replica_name();

}  // namespace weir
