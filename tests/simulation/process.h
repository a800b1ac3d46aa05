#pragma once

// One process of a replica, from its start to its crash: the core on its own clock and its own way
// to the store, the loop around it, and the requests that it serves. A replica that is restarted is
// a new process under the same name.
//
// What happens to it goes through deliver(): a process that is paused gets it when it goes on.

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordination/coordinator.h"
#include "tests/simulation/faulty_store.h"

namespace weir::sim {

// What the run must have reached, and what tells whether it did anything.
struct Reached {
  std::uint64_t conflict = 0, found_applied = 0, found_absent = 0, lease_lost = 0;
  std::uint64_t rolled_with_waiters = 0, overflow = 0;
  std::uint64_t arrivals = 0, waited = 0, refused = 0, left = 0, spoiled = 0, crashes = 0;
  void add(const Reached& other);
};

// Limits as they are now, and when they were what: the rules of the run.
class Limits {
 public:
  Limits(const Events& events, const Plan& plan);
  const Limit& now(std::size_t rule) const { return now_[rule]; }
  std::size_t index_of(const std::string& rule) const { return index_.at(rule); }
  void set(std::size_t rule, std::int64_t units);
  // The highest that any replica may have had at some time since.
  std::int64_t most_since(std::size_t rule, SteadyTime since) const;

 private:
  const Events& events_;
  std::vector<Limit> now_;
  std::map<std::string, std::size_t> index_;
  std::vector<std::vector<std::pair<SteadyTime, std::int64_t>>> changes_;
};

class Process {
 public:
  Process(Shared& shared, const Limits& limits, Reached& reached, int replica, int number);
  ~Process();

  bool alive() const { return core_ != nullptr; }
  // Does it now, or when the pause is over, or never.
  void deliver(std::function<void()> what);
  void pause();
  void go_on();
  void crash();
  void configure();
  void step_clock(Duration by);
  Duration wall_offset() const { return clock_.wall_offset(); }
  void set_live_replicas(int count);
  void lose_watches() { store_.lose_watches(); }
  void lose_a_lease();
  void cut_off_until(SteadyTime until) { store_.cut_off_until(until); }

  void arrive(std::size_t rule, int resource, int tenant);
  // Nobody may wait long for what is free: looked at every now and then.
  void inspect(bool calm);
  std::size_t unfinished() const { return requests_.size(); }
  std::size_t waiting() const;
  void stop();
  bool stopped() const { return stopped_; }

 private:
  struct Line;
  struct Request;
  using Requests = std::list<Request>;

  void run();
  void wake();
  void set_timer();
  void take(Requests::iterator request);
  static void woken(void* who);
  void answered(Requests::iterator request);
  void check_order(const Request& request);
  static void step_out(Line& line, const Request& request);
  void send(Requests::iterator request);
  void record(Request& request);
  void record_sole(Request& request, const Batch& batch, const Limit& limit);
  void finish(Requests::iterator request);
  void leave(Requests::iterator request);
  void inspect_line(Line& line);
  void later(Duration delay, std::function<void()> what);
  std::string range_of(const Resource& resource, const Limit& limit);

  Shared& shared_;
  const Limits& limits_;
  Reached& reached_;
  const int replica_;
  const std::uint64_t number_;  // of the process, over the run
  Dice dice_, core_dice_;
  TrueClock truth_;
  SkewedClock clock_;
  WallTime latest_{}, set_back_at_{};
  std::map<std::string, std::int64_t> configured_;
  FaultyStore store_;
  std::unique_ptr<Coordinator> core_;

  bool paused_ = false;
  std::deque<std::function<void()>> held_back_;
  bool run_due_ = false;
  SteadyTime timer_ = SteadyTime::max();
  std::uint64_t runs_ = 0, work_ = 0;  // in this second
  std::int64_t second_ = 0;

  Requests requests_;
  std::map<Resource*, Line> lines_;
  std::vector<Requests::iterator> woken_;  // reversed by a bug
  std::uint64_t next_request_ = 0;
  std::map<LeaseId, SteadyTime> lost_leases_;  // in use, and taken away
  SteadyTime calm_since_{};
  bool stopped_ = false, stopping_ = false;
};

}  // namespace weir::sim
