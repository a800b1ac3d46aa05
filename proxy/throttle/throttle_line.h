#pragma once

// Who waits for an upstream's throttle: one after another from each tenant in turn. Whoever the
// throttle denies stays where he is, and those behind him that it does not deny go; so nobody waits
// for another tenant's bucket, and of those that share one each gets his turn. Whoever comes and
// does not wait goes behind all that might go now, and behind those of his own tenant.
//
// Shared by all workers: any thread, one lock. Nothing here waits or has a timer: join() and
// serve() say when it is worth serving the line again, and whoever waits sees to it (LineBell).

#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "coordination/line.h"
#include "proxy/throttle/throttle.h"

namespace weir {

class ThrottleLine {
 public:
  // Somebody who waits. Lives until it was answered: once in line it must leave(), or be woken,
  // before it goes.
  struct Visitor : Line::Place {
    std::string_view tenant;
    // Called once, by any thread, after the answer is there.
    void (*wake)(void* who) = nullptr;
    void* who = nullptr;
    Throttle::Ticket ticket;             // the answer; none: everybody is sent away
    std::optional<SteadyTime> retry_at;  // when it was denied: before then asking is in vain
  };

  explicit ThrottleLine(Throttle& throttle) : throttle_(throttle) {}

  // At once or not at all.
  Throttle::Ticket accept(std::string_view tenant, SteadyTime now);
  // Says when to serve; nothing: everybody is sent away, and it is not in line.
  std::optional<SteadyTime> join(Visitor& visitor, SteadyTime now);
  // True: it is out of the line and will not be woken. False: its wake is on the way, or has come.
  bool leave(Visitor& visitor);
  // Lets those go who may. Called too early it does nothing. Says when to call it next; max:
  // nobody waits.
  SteadyTime serve(SteadyTime now);
  // Sends everybody away, from now on.
  void drain();
  std::size_t waiting() const;
  // How many one of the tenant's would stand behind, as far as can be told without asking.
  std::size_t waiting_before(std::string_view tenant) const;

 private:
  using Woken = std::vector<Visitor*>;
  void offer(SteadyTime now, Woken& woken);
  std::optional<SteadyTime> others_until(std::string_view tenant, SteadyTime now) const;
  static void wake(const Woken& woken);

  Throttle& throttle_;
  mutable std::mutex mutex_;  // guards all below
  Line line_;
  SteadyTime served_at_ = SteadyTime::min();
  SteadyTime due_ = SteadyTime::max();  // to be served
  SteadyTime vain_until_{};             // whoever is in line would be denied before
  bool draining_ = false;
};

}  // namespace weir
