#include "tests/simulation/use.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "coordination/memory_store.h"
#include "tests/simulation/process.h"

namespace weir::sim {
namespace {

constexpr milliseconds kInspectEvery{250};

Plan plan_of(const UseCase& use_case) {
  Rule rule;
  rule.name = "rule";
  rule.limit = use_case.limit;
  rule.serving = use_case.serving;
  Plan plan;
  plan.replicas = static_cast<int>(use_case.distances.size());
  plan.rules.push_back(rule);
  plan.faults = false;
  plan.distances = use_case.distances;
  return plan;
}

class UseRun {
 public:
  UseRun(const UseCase& use_case, std::uint64_t seed)
      : case_(use_case), plan_(plan_of(use_case)), dice_(seed) {
    watch_ = store_.watch(keys_under("/weir/v1/claims/"), 1,
                          {[this](Revision revision, std::span<const WatchEvent> events) {
                             judge_.on_revision(revision, events);
                           },
                           [this] { judge_.fail("harness", "the judge's watch was lost"); }});
    shared_.calm = true;
    shared_.on_sent = [this](int replica) {
      sent_.push_back({events_.now(), replica});
      note_at_once(1);
    };
    shared_.on_served = [this](int replica) {
      note_at_once(-1);
      Process& process = *replicas_[static_cast<std::size_t>(replica)];
      events_.after(Duration{0},
                    [&process] { process.deliver([&process] { process.arrive(0, 1, 1); }); });
    };
  }

  Use play();

 private:
  struct Sent {
    SteadyTime at;
    int replica;
  };

  void note_at_once(int step) {
    if (events_.now() > settled()) {
      served_ += in_seconds(events_.now() - std::max(since_, settled())) * at_once_;
    }
    since_ = events_.now();
    at_once_ += step;
  }
  SteadyTime end() const { return kStart + case_.lasts; }
  // By then everybody has found their share.
  SteadyTime settled() const { return kStart + case_.lasts / 3; }
  void inspect();
  double used() const;
  double worst_window() const;
  double sliding_use() const;

  const UseCase& case_;
  const Plan plan_;
  Dice dice_;
  Events events_;
  TrueClock clock_{events_};
  Judge judge_{events_};
  MemoryStore store_{clock_};
  std::unique_ptr<Watch> watch_;
  Shared shared_{plan_, Bug::none, events_, store_, judge_, dice_, {}};
  Limits limits_{events_, plan_};
  Reached reached_;
  std::vector<std::unique_ptr<Process>> replicas_;
  std::vector<Sent> sent_;
  SteadyTime since_ = kStart;
  int at_once_ = 0;
  double served_ = 0;  // request-seconds since settled()
};

void UseRun::inspect() {
  judge_.set_cause({Cause::Kind::expiry});
  store_.expire();
  for (const auto& process : replicas_) process->inspect(true);
  events_.after(kInspectEvery, [this] { inspect(); });
}

// Whole windows only: the run begins and ends somewhere in one.
double UseRun::worst_window() const {
  const seconds length = case_.limit.window;
  std::map<std::int64_t, int> counts;
  for (const Sent& sent : sent_)
    ++counts[(sent.at - kStart + kStartWall.time_since_epoch()) / length];
  int worst = static_cast<int>(case_.limit.units);
  const std::int64_t first = (kStartWall.time_since_epoch() + length) / length;
  for (std::int64_t i = first; i < first + case_.lasts / length - 1; ++i) {
    worst = std::min(worst, counts[i]);
  }
  return worst;
}

// The window's length, by the time from each arrival to the one that had its unit next.
double UseRun::sliding_use() const {
  const auto units = static_cast<std::size_t>(case_.limit.units);
  if (sent_.size() <= units) return 0;
  double sum = 0;
  for (std::size_t i = units; i < sent_.size(); ++i) {
    sum += in_seconds(sent_[i].at - sent_[i - units].at);
  }
  return in_seconds(case_.limit.window) * static_cast<double>(sent_.size() - units) / sum;
}

double UseRun::used() const {
  const auto units = static_cast<double>(case_.limit.units);
  switch (case_.limit.mode) {
    case Mode::started:
    case Mode::until_done:
      return worst_window() / units;
    case Mode::sliding:
      return sliding_use();
    case Mode::in_flight:
      break;
  }
  return served_ / in_seconds(end() - settled()) / units;
}

Use UseRun::play() {
  for (int i = 0; i < plan_.replicas; ++i) {
    replicas_.push_back(std::make_unique<Process>(shared_, limits_, reached_, i, i + 1));
    replicas_.back()->set_live_replicas(plan_.replicas);
  }
  for (int client = 0; client < case_.clients; ++client) {
    for (const auto& process : replicas_) {
      events_.after(dice_.between(Duration{0}, milliseconds{500}),
                    [&process] { process->deliver([&process] { process->arrive(0, 1, 1); }); });
    }
  }
  inspect();
  while (!judge_.violation() && events_.step(end())) {
  }
  note_at_once(0);
  Use use;
  use.violation = judge_.violation();
  use.used = used();
  use.requests = sent_.size();
  use.messages = shared_.traffic;
  use.shares.resize(replicas_.size());
  double all = 0;
  for (const Sent& sent : sent_) {
    if (sent.at < settled()) continue;
    ++use.shares[static_cast<std::size_t>(sent.replica)];
    ++all;
  }
  for (double& share : use.shares) share /= std::max(all, 1.0);
  shared_.on_served = nullptr;
  for (const auto& process : replicas_) process->crash();
  return use;
}

}  // namespace

std::vector<UseCase> use_cases() {
  const std::vector<Duration> alike{milliseconds{3}, milliseconds{3}, milliseconds{3}};
  const std::vector<Duration> one_far{milliseconds{1}, milliseconds{1}, milliseconds{15}};
  std::vector<UseCase> cases;
  for (const auto& distances : {alike, one_far}) {
    for (const std::int64_t units : {100, 128, 129, 6000}) {
      const auto add = [&](const char* mode, Limit limit, int clients, Duration serving,
                           Duration lasts) {
        const char* where = distances == one_far ? ", one far" : "";
        limit.units = units;
        cases.push_back({std::string(mode) + " " + std::to_string(units) + where, limit, distances,
                         clients, serving, lasts});
      };
      Limit limit;
      limit.mode = Mode::started;
      limit.window = seconds{2};
      add("started", limit, units > 1000 ? 64 : 12, milliseconds{5}, seconds{20});
      limit.mode = Mode::sliding;
      limit.window = seconds{10};
      add("sliding", limit, 32, milliseconds{5}, seconds{60});
      limit.mode = Mode::in_flight;
      add("in_flight", limit, static_cast<int>(units * 2 / 3), seconds{3}, seconds{45});
    }
  }
  return cases;
}

Use play(const UseCase& use_case, std::uint64_t seed) { return UseRun(use_case, seed).play(); }

}  // namespace weir::sim
