#pragma once

// The process's own clock. The only file in which real time is read; everything else gets it
// passed.

#include <string>

#include "coordination/base/clock.h"

namespace weir {

class SystemClock final : public Clock {
 public:
  SteadyTime steady_now() const override;
  WallTime wall_now() const override;
};

// hostname-pid: the name of a replica that was given none.
std::string default_replica_name();

}  // namespace weir
