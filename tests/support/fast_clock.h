#pragma once

#include "coordination/base/clock.h"

namespace weir::test {

// Each look at it is a second later, until it is stopped. One thread.
class FastClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return now_ += step_; }
  WallTime wall_now() const override { return {}; }
  void stop() { step_ = {}; }

 private:
  mutable SteadyTime now_{};
  std::chrono::seconds step_{1};
};

}  // namespace weir::test
