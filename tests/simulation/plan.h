#pragma once

// What a seed stands for, before anything happens: who takes part, what the limits are, how much is
// asked for, and what goes wrong how often. Plain values.

#include <cstdint>
#include <string>
#include <vector>

#include "coordination/limit.h"
#include "tests/simulation/bugs.h"
#include "tests/simulation/world.h"

namespace weir::sim {

struct Rule {
  std::string name;
  Limit limit;
  int resources = 1;
  int tenants = 1;
  Duration between_arrivals{};  // over all replicas and resources
  Duration between_bursts{};    // 0: none
  int burst = 0;
  Duration serving{};  // how long a request takes, on average
  double impatient = 0;
  double leaves = 0;  // part of the clients that go away while they wait
};

// Per message to the store, while there are faults.
struct MessageFaults {
  double lost = 0;         // never applied
  double late = 0;         // applied seconds after the caller gave up
  double reply_lost = 0;   // applied, but the caller does not hear
  double reset = 0;        // an early "unknown", applied or not, before or after
  double duplicate = 0;    // applied twice
  double not_applied = 0;  // and says so
};

// Means of the gaps between them while there are faults; 0: never.
struct Mishaps {
  Duration outage{}, leader_change{}, lease_loss{}, watch_loss{};
  Duration crash{}, pause{}, clock_step{};
};

struct Plan {
  std::uint64_t seed = 0;
  int replicas = 1;
  std::vector<Rule> rules;
  std::size_t max_resources = 1000;
  std::size_t max_waiting = 100'000;
  bool faults = true;
  bool embedded = false;  // the store answers before a call returns
  bool sole = false;  // one process for good, whose allowances count by themselves what they can
  bool knows_replicas = true;
  Duration delay{}, calm_delay{};   // one way, at most
  std::vector<Duration> distances;  // the same by replica, where it is not the same for all
  double slow_sends = 0;            // part of the requests that are sent long after their grant
  MessageFaults messages;
  Mishaps mishaps;
  Duration skew{};                    // wall clocks are within this, to both sides
  Duration back{};                    // and may be set back to this far behind
  Duration faults_for{}, calm_for{};  // then no new requests
  std::vector<std::pair<Duration, int>> limit_changes;  // when, of which rule
};

Plan make_plan(std::uint64_t seed, Bug bug);

}  // namespace weir::sim
