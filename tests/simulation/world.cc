#include "tests/simulation/world.h"

#include <cmath>
#include <utility>

namespace weir::sim {

Duration Dice::gap(Duration mean) {
  const double length = -std::log(1 - unit()) * static_cast<double>(mean.count());
  return Duration{static_cast<Duration::rep>(std::min(length, 20.0 * mean.count())) + 1};
}

void Events::at(SteadyTime when, std::function<void()> what) {
  queue_.push({std::max(when, now_), asked_++, std::move(what)});
}

bool Events::step(SteadyTime end) {
  if (queue_.empty() || queue_.top().when > end) {
    now_ = std::max(now_, end);
    return false;
  }
  // top() is const only so that nobody changes the order; it is popped before anybody looks again.
  Event next = std::move(const_cast<Event&>(queue_.top()));
  queue_.pop();
  now_ = next.when;
  next.what();
  return true;
}

}  // namespace weir::sim
