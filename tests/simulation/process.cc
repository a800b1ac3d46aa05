#include "tests/simulation/process.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/requests.h"

namespace weir::sim {
namespace {

constexpr milliseconds kTimeout{1000};
// A loop that turns more often than this in a second, beside what it was given to do, spins.
constexpr std::uint64_t kRunsPerSecond = 300;

Duration some_skew(const Plan& plan, Dice& dice) { return dice.between(-plan.skew, plan.skew); }

}  // namespace

void Reached::add(const Reached& other) {
  conflict += other.conflict, found_applied += other.found_applied;
  found_absent += other.found_absent, lease_lost += other.lease_lost;
  rolled_with_waiters += other.rolled_with_waiters, overflow += other.overflow;
  arrivals += other.arrivals, waited += other.waited, refused += other.refused;
  left += other.left, spoiled += other.spoiled, crashes += other.crashes;
}

Limits::Limits(const Events& events, const Plan& plan) : events_(events) {
  for (const Rule& rule : plan.rules) {
    index_[rule.name] = now_.size();
    now_.push_back(rule.limit);
    changes_.push_back({{events.now(), rule.limit.units}});
  }
}

void Limits::set(std::size_t rule, std::int64_t units) {
  now_[rule].units = units;
  changes_[rule].emplace_back(events_.now(), units);
}

std::int64_t Limits::most_since(std::size_t rule, SteadyTime since) const {
  std::int64_t most = 0;
  for (auto change = changes_[rule].rbegin(); change != changes_[rule].rend(); ++change) {
    most = std::max(most, change->second);
    if (change->first <= since) break;
  }
  return most;
}

Process::Process(Shared& shared, const Limits& limits, Reached& reached, int replica, int number)
    : shared_(shared),
      limits_(limits),
      reached_(reached),
      replica_(replica),
      number_(static_cast<std::uint64_t>(number)),
      dice_(shared.dice.next()),
      core_dice_(shared.dice.next()),
      truth_(shared.events),
      clock_(truth_, dice_.between(Duration{0}, seconds{1000}), some_skew(shared.plan, dice_)),
      store_(
          shared, kTimeout, [this](std::function<void()> what) { deliver(std::move(what)); },
          [this](const std::string& rule) { return configured_.at(rule); }) {
  core_ =
      std::make_unique<Coordinator>(clock_, core_dice_, store_,
                                    CoordinatorOptions{.replica = "w" + std::to_string(replica),
                                                       .max_resources = shared.plan.max_resources,
                                                       .store_timeout = kTimeout,
                                                       .sole = shared.plan.sole},
                                    [this] { wake(); });
  const auto place = static_cast<std::size_t>(replica);
  if (place < shared.plan.distances.size()) store_.set_distance(shared.plan.distances[place]);
  configure();
  wake();
}

Process::~Process() { crash(); }

void Process::configure() {
  if (!alive()) return;
  std::vector<std::pair<std::string, Limit>> all;
  for (std::size_t i = 0; i < shared_.plan.rules.size(); ++i) {
    const std::string& name = shared_.plan.rules[i].name;
    all.emplace_back(name, limits_.now(i));
    configured_[name] = limits_.now(i).units;
  }
  core_->configure(all, shared_.plan.max_resources, shared_.plan.max_waiting);
}

void Process::set_live_replicas(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("w" + std::to_string(i));
  core_->set_replicas(names);
}

void Process::deliver(std::function<void()> what) {
  if (!alive()) return;
  if (paused_) return held_back_.push_back(std::move(what));
  ++work_;
  what();
  // A bug: those woken together are told in the wrong order.
  while (!woken_.empty()) {
    const Requests::iterator last = woken_.back();
    woken_.pop_back();
    answered(last);
  }
}

void Process::later(Duration delay, std::function<void()> what) {
  shared_.events.after(delay, [this, what = std::move(what)] { deliver(what); });
}

void Process::pause() { paused_ = true; }

void Process::go_on() {
  paused_ = false;
  for (auto& what : std::exchange(held_back_, {})) deliver(std::move(what));
}

// What the process had dies with it: nobody is told, nothing more is sent.
void Process::crash() {
  if (!alive()) return;
  reached_.conflict += core_->stats().conflict;
  reached_.found_applied += core_->stats().found_applied;
  reached_.found_absent += core_->stats().found_absent;
  reached_.lease_lost += core_->stats().leases_lost;
  reached_.overflow += core_->resources().overflows();
  const std::unique_ptr<Coordinator> dying = std::move(core_);
  held_back_.clear();
  woken_.clear();
  for (Request& request : requests_) {
    if (request.state == Request::State::waiting)
      request.resource->allowance()->leave(*request.waiter);
    for (const std::uint64_t number : request.arrivals) shared_.judge.ended(number);
  }
  requests_.clear();
  lines_.clear();
}

void Process::wake() {
  if (run_due_ || !alive()) return;
  run_due_ = true;
  later(Duration{0}, [this] { run(); });
}

void Process::run() {
  run_due_ = false;
  const auto second = (shared_.events.now() - kStart) / seconds{1};
  if (second != second_) {
    if (runs_ > kRunsPerSecond + 3 * work_) {
      shared_.judge.fail("spin", std::to_string(runs_) + " turns of the loop in a second");
    }
    second_ = second;
    runs_ = work_ = 0;
  }
  ++runs_;
  if (work_ > 0) --work_;  // this turn itself
  core_->run();
  latest_ = std::max(latest_, clock_.wall_now());
  set_timer();
  if (shared_.bug == Bug::busy_loop) {
    shared_.events.after(milliseconds{1}, [this] { wake(); });
  }
}

void Process::set_timer() {
  const auto due = core_->next_due();
  if (!due || (shared_.bug == Bug::timer_forgotten && dice_.chance(0.3))) return;
  if (*due == SteadyTime::max()) return;
  const SteadyTime at = std::max(clock_.true_time(*due), shared_.events.now());
  if (timer_ <= at && timer_ >= shared_.events.now()) return;
  timer_ = at;
  // Timers are late, a little.
  shared_.events.at(at + dice_.between(Duration{0}, milliseconds{2}), [this, at] {
    if (timer_ != at) return;
    timer_ = SteadyTime::max();
    deliver([this] { run(); });
  });
}

void Process::lose_a_lease() {
  const LeaseId lease = store_.lose_a_lease();
  if (!lease || !store_.kept().contains(lease) || !shared_.judge.lease_was_lost(lease)) return;
  lost_leases_.emplace(lease, shared_.events.now());
}

void Process::step_clock(Duration by) {
  latest_ = std::max(latest_, clock_.wall_now());
  clock_.step(by);
  if (by < Duration{0}) set_back_at_ = latest_;
}

std::size_t Process::waiting() const {
  std::size_t count = 0;
  for (const Request& request : requests_) count += request.state == Request::State::waiting;
  return count;
}

void Process::stop() {
  stopping_ = true;
  core_->drain();
  core_->stop([this] { stopped_ = true; });
}

}  // namespace weir::sim
