#pragma once

// Others' throttles in the place of one of Weir's: they know no tenants.

#include <functional>
#include <utility>

#include "proxy/throttle/throttle.h"

namespace weir::test {

class BlindThrottle final : public Throttle {
 public:
  using Ask = std::function<bool(SteadyTime)>;
  using Learn = std::function<void(Load, SteadyTime)>;

  BlindThrottle(Ask ask, Learn learn) : ask_(std::move(ask)), learn_(std::move(learn)) {}

  Ticket accept(std::string_view, SteadyTime now) override {
    return ask_(now) ? granted({}, {}, 0) : denied({});
  }
  ThrottleFacts facts(SteadyTime) const override { return {}; }
  void start_at(double) override {}

 private:
  void settled(const Held&, Load load, SteadyTime now) override { learn_(load, now); }
  void dropped(const Held&) override {}

  const Ask ask_;
  const Learn learn_;
};

}  // namespace weir::test
