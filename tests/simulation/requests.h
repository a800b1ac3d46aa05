#pragma once

// A request inside a Process, and the line it stands in as an outsider would draw it.

#include <deque>
#include <map>

#include "tests/simulation/process.h"

namespace weir::sim {

struct Process::Request {
  Process* process = nullptr;
  Requests::iterator self;
  std::uint64_t number = 0;
  std::size_t rule = 0;
  std::string name, tenant;
  bool patient = true;
  std::shared_ptr<Resource> resource;
  std::unique_ptr<Waiter> waiter;
  enum class State { taking, waiting, answered, sent } state = State::taking;
  SteadyTime since{};
  WallTime arrived_at{};
  std::vector<std::uint64_t> arrivals;  // the judge's numbers
};

// Who waits, in order of arrival; and since when a unit was to be had that nobody gave them.
struct Process::Line {
  std::shared_ptr<Resource> resource;
  std::deque<Request*> waiting;
  // Fair lines: how often each other tenant was served while one waits.
  std::map<std::string, std::map<std::string, int>> passed;
  std::optional<SteadyTime> free_since, in_hand_since;
};

}  // namespace weir::sim
