#pragma once

// Which member of etcd to use now. One is used as long as it does its work; one that is stuck, gone
// or without a leader is left for the next that may be tried, and is itself tried again after a
// delay that doubles with every failure (half of it is random, so that replicas do not come back
// together). A pure object: facts and `now` in, a choice out. Owned by the coordination loop.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "coordination/base/clock.h"

namespace weir::etcd {

class Endpoints {
 public:
  static constexpr std::chrono::milliseconds kFirstDelay{100};
  static constexpr std::chrono::milliseconds kLongestDelay{2'000};
  // Until a member of a refused version is looked at again: somebody may have upgraded it.
  static constexpr std::chrono::seconds kRefusedDelay{30};

  // At least one member; replicas begin with different ones.
  Endpoints(std::size_t members, std::size_t first) : members_(members), preferred_(first) {}

  // nullopt: none may be tried before next_try().
  std::optional<std::size_t> choose(SteadyTime now) const;
  SteadyTime next_try() const;

  // It did what it was asked.
  void answered(std::size_t member, SteadyTime now);
  // A call that was sent at `sent` ran out of time. Whether the member is stuck, and failed: it
  // has answered nothing since then. One slow call among others is no reason to leave.
  bool timed_out(std::size_t member, SteadyTime sent, SteadyTime now, std::uint64_t random);
  void failed(std::size_t member, SteadyTime now, std::uint64_t random);
  void refused(std::size_t member, SteadyTime now);

 private:
  struct Member {
    int failures = 0;  // in a row
    SteadyTime not_before = SteadyTime::min();
    SteadyTime answered = SteadyTime::min();
  };

  std::vector<Member> members_;
  std::size_t preferred_;
};

}  // namespace weir::etcd
