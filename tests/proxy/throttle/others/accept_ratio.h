#pragma once

// What a client does that goes by how many of its requests were accepted (Google's SRE book,
// "Handling Overload"; gRPC-Java's AdaptiveThrottler): a model, to compare Weir's throttles with.
// It rejects with probability
//
//   max(0, (requests - K * accepts) / (requests + padding))      over a sliding window
//
// so that a server gets about K times what it accepts. Requests are counted before they are sent,
// those rejected here too. Pure: `now` and random fractions are handed in.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "coordination/base/clock.h"

namespace weir::test {

struct AcceptRatioOptions {
  std::chrono::nanoseconds window{std::chrono::minutes{2}};
  int slots = 50;  // of the window; the oldest goes as a whole
  double k = 2;
  double padding = 1;
  double most = 1;  // rejection never gets more probable than that; 1: nearly all is rejected
};

class AcceptRatio {
 public:
  explicit AcceptRatio(const AcceptRatioOptions& options)
      : options_(options), slots_(static_cast<std::size_t>(options.slots)) {}

  double rejection(SteadyTime now) const {
    const std::int64_t oldest = number_of(now) - options_.slots + 1;
    double requests = 0, accepts = 0;
    for (const Slot& slot : slots_) {
      if (slot.number < oldest) continue;
      requests += slot.requests;
      accepts += slot.accepts;
    }
    const double share = (requests - options_.k * accepts) / (requests + options_.padding);
    return std::clamp(share, 0.0, options_.most);
  }

  // Whether to send; `fraction` is from [0, 1).
  bool ask(double fraction, SteadyTime now) {
    const bool send = fraction >= rejection(now);
    slot_of(now).requests += 1;
    return send;
  }

  void accepted(SteadyTime now) { slot_of(now).accepts += 1; }

 private:
  struct Slot {
    std::int64_t number = std::numeric_limits<std::int64_t>::min();
    double requests = 0, accepts = 0;
  };

  // Rounds down, also before the clock's zero.
  std::int64_t number_of(SteadyTime now) const {
    const std::int64_t width = options_.window.count() / options_.slots;
    const std::int64_t time = now.time_since_epoch().count();
    return time / width - (time % width < 0 ? 1 : 0);
  }

  Slot& slot_of(SteadyTime now) {
    const std::int64_t number = number_of(now);
    const std::int64_t place = (number % options_.slots + options_.slots) % options_.slots;
    Slot& slot = slots_[static_cast<std::size_t>(place)];
    if (slot.number != number) slot = {number};
    return slot;
  }

  const AcceptRatioOptions options_;
  std::vector<Slot> slots_;
};

}  // namespace weir::test
