#include "tests/simulation/simulation.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "coordination/memory_store.h"
#include "tests/simulation/plan.h"

namespace weir::sim {
namespace {

constexpr milliseconds kInspectEvery{250};
// However much there is to do, a run that lasts this long after the last request is stuck.
constexpr seconds kLongest{4'000};

class Run {
 public:
  Run(std::uint64_t seed, Bug bug, Trace trace)
      : plan_(make_plan(seed, bug)), dice_(seed ^ 0x5EEDu), trace_(trace), bug_(bug) {
    watch_ = store_.watch(keys_under("/weir/v1/claims/"), 1,
                          {[this](Revision revision, std::span<const WatchEvent> events) {
                             if (trace_ == Trace::on) print(revision, events);
                             judge_.on_revision(revision, events);
                           },
                           [this] { judge_.fail("harness", "the judge's watch was lost"); }});
  }

  Result play();

 private:
  void say(const char* what, int replica, double number = 0) const {
    if (trace_ == Trace::off) return;
    std::printf("%10.4f w%d %s %g\n", since_start(events_.now()), replica, what, number);
  }
  void print(Revision revision, std::span<const WatchEvent> events) const;
  bool faults() const { return plan_.faults && events_.now() < faults_end(); }
  SteadyTime faults_end() const { return kStart + plan_.faults_for; }
  SteadyTime arrivals_end() const { return faults_end() + plan_.calm_for; }

  void start(int replica);
  void arrivals(std::size_t rule);
  void burst(std::size_t rule);
  // Calls `what` again and again while there are faults.
  void mishap(Duration mean, std::function<void()> what);
  void mishaps();
  void crash();
  void pause();
  void step_clock();
  void inspect();
  void change_limit(int rule);
  Process& anybody() { return *live_[dice_.below(live_.size())]; }
  std::size_t unfinished() const;
  void wind_up();

  const Plan plan_;
  Dice dice_;
  const Trace trace_;
  const Bug bug_;
  Events events_;
  TrueClock clock_{events_};
  Judge judge_{events_};
  MemoryStore store_{clock_};
  std::unique_ptr<Watch> watch_;
  Shared shared_{plan_, bug_, events_, store_, judge_, dice_, {}};
  Limits limits_{events_, plan_};
  Reached reached_;
  std::vector<std::unique_ptr<Process>> all_;  // the dead too: messages of theirs are under way
  std::vector<Process*> live_;                 // by replica
  int processes_ = 0;
};

void Run::print(Revision revision, std::span<const WatchEvent> events) const {
  for (const WatchEvent& event : events) {
    std::printf("%10.4f -- %lld %s %s %s\n", since_start(events_.now()),
                static_cast<long long>(revision),
                event.kind == WatchEvent::Kind::put ? "put" : "deleted", event.key.key.c_str(),
                event.key.value.c_str());
  }
}

void Run::start(int replica) {
  all_.push_back(std::make_unique<Process>(shared_, limits_, reached_, replica, ++processes_));
  live_[static_cast<std::size_t>(replica)] = all_.back().get();
  if (plan_.knows_replicas) all_.back()->set_live_replicas(plan_.replicas);
  say("starts; its clock is off by", replica, in_seconds(all_.back()->wall_offset()));
}

void Run::arrivals(std::size_t rule) {
  const Rule& plan = plan_.rules[rule];
  events_.after(dice_.gap(plan.between_arrivals), [this, rule, &plan] {
    if (events_.now() >= arrivals_end()) return;
    Process& process = anybody();
    const int resource = static_cast<int>(dice_.between(1, plan.resources));
    const int tenant = static_cast<int>(dice_.between(1, plan.tenants));
    process.deliver([&process, rule, resource, tenant] { process.arrive(rule, resource, tenant); });
    arrivals(rule);
  });
}

void Run::burst(std::size_t rule) {
  const Rule& plan = plan_.rules[rule];
  if (plan.burst == 0) return;
  events_.after(dice_.gap(plan.between_bursts), [this, rule, &plan] {
    if (events_.now() >= arrivals_end()) return;
    const int resource = static_cast<int>(dice_.between(1, plan.resources));
    for (int i = 0; i < plan.burst; ++i) {
      Process& process = anybody();
      const int tenant = static_cast<int>(dice_.between(1, plan.tenants));
      process.deliver(
          [&process, rule, resource, tenant] { process.arrive(rule, resource, tenant); });
    }
    burst(rule);
  });
}

void Run::mishap(Duration mean, std::function<void()> what) {
  if (mean == Duration{0}) return;
  events_.after(dice_.gap(mean), [this, mean, what = std::move(what)] {
    if (!faults()) return;
    what();
    mishap(mean, what);
  });
}

void Run::mishaps() {
  const Mishaps& m = plan_.mishaps;
  mishap(m.outage, [this] {
    const SteadyTime until =
        std::min(faults_end(), events_.now() + dice_.between(milliseconds{200}, seconds{20}));
    const bool all = dice_.chance(0.5);
    if (all) {
      shared_.away_until = until;
    } else {
      anybody().cut_off_until(until);
    }
    say(all ? "the store is away for" : "somebody is cut off for", 0,
        in_seconds(until - events_.now()));
  });
  mishap(m.leader_change, [this] {
    say("leader change", 0);
    judge_.set_cause({Cause::Kind::expiry});
    store_.expire();
    store_.rearm_leases(seconds{dice_.between(1, 5)});
  });
  mishap(m.lease_loss, [this] {
    say("a lease is lost", 0);
    anybody().lose_a_lease();
  });
  mishap(m.watch_loss, [this] { anybody().lose_watches(); });
  mishap(m.crash, [this] { crash(); });
  mishap(m.pause, [this] { pause(); });
  mishap(m.clock_step, [this] { step_clock(); });
}

void Run::crash() {
  const int replica = static_cast<int>(dice_.between(0, plan_.replicas - 1));
  Process& process = *live_[static_cast<std::size_t>(replica)];
  if (!process.alive()) return;
  say("crashes", replica);
  ++reached_.crashes;
  process.crash();
  const SteadyTime again =
      std::min(faults_end(), events_.now() + dice_.between(milliseconds{50}, seconds{20}));
  events_.at(again, [this, replica] { start(replica); });
}

void Run::pause() {
  const int replica = static_cast<int>(dice_.between(0, plan_.replicas - 1));
  Process* process = live_[static_cast<std::size_t>(replica)];
  if (!process->alive()) return;
  const Duration rest = faults_end() - events_.now();
  const Duration length = std::min(rest, dice_.between(milliseconds{100}, seconds{25}));
  say("pauses for", replica, in_seconds(length));
  process->pause();
  events_.after(length, [this, process, replica] {
    say("goes on", replica);
    process->go_on();
  });
}

void Run::step_clock() {
  const int replica = static_cast<int>(dice_.between(0, plan_.replicas - 1));
  Process& process = *live_[static_cast<std::size_t>(replica)];
  const Duration to = dice_.between(-plan_.back, plan_.skew);
  const Duration by = std::max<Duration>(to - process.wall_offset(), -seconds{90});
  say("clock is set by", replica, in_seconds(by));
  process.step_clock(by);
}

void Run::change_limit(int rule) {
  const std::int64_t before = limits_.now(static_cast<std::size_t>(rule)).units;
  const std::int64_t units = std::max<std::int64_t>(
      1, dice_.chance(0.5) ? before + dice_.between(-before / 2, before) : dice_.between(1, 300));
  limits_.set(static_cast<std::size_t>(rule), units);
  say("limit is now", rule, static_cast<double>(units));
  // Replicas read it one after another.
  for (std::size_t i = 0; i < live_.size(); ++i) {
    events_.after(dice_.between(Duration{0}, milliseconds{500}), [this, i] {
      Process* process = live_[i];
      process->deliver([process] { process->configure(); });
    });
  }
}

void Run::inspect() {
  judge_.set_cause({Cause::Kind::expiry});
  store_.expire();
  shared_.calm = !faults();
  for (Process* process : live_) process->inspect(shared_.calm);
  events_.after(kInspectEvery, [this] { inspect(); });
}

std::size_t Run::unfinished() const {
  std::size_t count = 0;
  for (const Process* process : live_) count += process->unfinished();
  return count;
}

// Everybody was served: what is in flight goes back at once, or with the lease of one that crashed.
// A stop gives back what was not spent, and leases end by themselves.
void Run::wind_up() {
  SteadyTime end = events_.now() + seconds{60};
  while (!judge_.violation() && events_.step(end)) {
  }
  // But for a copy of what was sent only once, which no transport makes, where the watch that would
  // tell of it was lost.
  const Mishaps& m = plan_.mishaps;
  const bool untold = plan_.messages.duplicate > 0 && m.watch_loss + m.outage > Duration{0};
  if (judge_.in_flight() > 0 && !untold) {
    judge_.fail("left_behind", std::to_string(judge_.in_flight()) + " units of nothing in flight");
  }
  for (Process* process : live_) process->stop();
  end = events_.now() + seconds{10};
  while (!judge_.violation() && events_.step(end)) {
  }
  for (Process* process : live_) {
    if (!process->stopped()) judge_.fail("not_stopped", "a replica does not stop");
    process->crash();
  }
  end = events_.now() + seconds{200};
  while (!judge_.violation() && events_.step(end)) {
  }
  if (judge_.keys() > 0) {
    judge_.fail("left_behind", std::to_string(judge_.keys()) + " claims that nobody holds");
  }
}

Result Run::play() {
  live_.resize(static_cast<std::size_t>(plan_.replicas));
  for (int i = 0; i < plan_.replicas; ++i) start(i);
  for (std::size_t i = 0; i < plan_.rules.size(); ++i) {
    arrivals(i);
    burst(i);
  }
  for (const auto& [when, rule] : plan_.limit_changes) {
    events_.after(when, [this, r = rule] { change_limit(r); });
  }
  if (plan_.faults) mishaps();
  inspect();

  while (!judge_.violation() && events_.step(arrivals_end())) {
  }
  const SteadyTime longest = events_.now() + kLongest;
  while (!judge_.violation() && unfinished() > 0 && events_.step(longest)) {
  }
  if (unfinished() > 0) judge_.fail("not_served", std::to_string(unfinished()) + " at the end");
  if (!judge_.violation()) wind_up();

  for (const auto& process : all_) process->crash();
  Result result;
  result.violation = judge_.violation();
  result.reached = reached_;
  result.digest = judge_.digest();
  result.revisions = static_cast<std::uint64_t>(store_.revision());
  result.messages = shared_.traffic;
  result.virtual_seconds = since_start(events_.now());
  return result;
}

}  // namespace

Result simulate(std::uint64_t seed, Bug bug, Trace trace) {
  Run run(seed, bug, trace);
  return run.play();
}

}  // namespace weir::sim
