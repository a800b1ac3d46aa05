#include "tests/simulation/requests.h"

#include <algorithm>
#include <utility>

#include "coordination/window.h"

namespace weir::sim {
namespace {

// The batch behind a permit, which only the judge of a run has to know: which claim a request was
// sent on. A template that is instantiated by hand may name what is private.
std::shared_ptr<Batch> batch_of(const Permit& permit);
template <std::shared_ptr<Batch> Permit::* member>
struct Opened {
  friend std::shared_ptr<Batch> batch_of(const Permit& permit) { return permit.*member; }
};
template struct Opened<&Permit::batch_>;

// How long a unit may be free while somebody waits for one, without faults: a few round trips and
// lost races.
constexpr seconds kFree{5};
constexpr seconds kInHand{2};
// A lease may be spent from for at most this long after it was lost: its fence stands at 12 s from
// the sending of the last keepalive that succeeded.
constexpr seconds kFenced{12};
// A grant may be sent so much later: a slow sender's process was paused.
constexpr seconds kHeldBack{40};
// And for how long nobody at all may be served when others wait.
constexpr seconds kNoProgress{60};

}  // namespace

void Process::arrive(std::size_t rule, int resource, int tenant) {
  const Rule& plan = shared_.plan.rules[rule];
  requests_.emplace_back();
  const auto request = std::prev(requests_.end());
  request->process = this;
  request->self = request;
  request->rule = rule;
  request->name = "/" + std::to_string(resource);
  request->tenant = "t" + std::to_string(tenant);
  request->patient = !dice_.chance(plan.impatient);
  request->arrived_at = latest_;
  if (dice_.chance(plan.leaves)) {
    // Its number says whether it is still the same request by then.
    const std::uint64_t number = request->number = ++next_request_;
    later(dice_.gap(seconds{3}), [this, number] {
      const auto found = std::find_if(requests_.begin(), requests_.end(),
                                      [number](const Request& r) { return r.number == number; });
      if (found != requests_.end()) leave(found);
    });
  }
  take(request);
}

void Process::take(Requests::iterator request) {
  Policy& policy = core_->policy(shared_.plan.rules[request->rule].name);
  const Limit limit = policy.limit();
  request->resource = core_->find(policy, request->name);
  request->waiter = std::make_unique<Waiter>();
  Waiter& waiter = *request->waiter;
  waiter.wake = &Process::woken;
  waiter.who = &*request;
  const bool ignored = shared_.bug == Bug::tenants_ignored;
  waiter.tenant = ignored ? std::string_view{"all"} : std::string_view{request->tenant};
  waiter.patient = request->patient;
  request->since = shared_.events.now();
  request->state = Request::State::waiting;
  Line& line = lines_[request->resource.get()];
  if (!line.resource) line.resource = request->resource;
  // In the line before it asks: it may be answered by what its asking sets off.
  line.waiting.push_back(&*request);
  const auto allowance = request->resource->allowance();
  const auto taken = allowance->take(allowance, waiter, limit.queue, clock_.now());
  if (taken != Allowance::Taken::waiting) {
    answered(request);
  } else {
    ++reached_.waited;
  }
}

void Process::woken(void* who) {
  auto& request = *static_cast<Request*>(who);
  Process& process = *request.process;
  switch (process.shared_.bug) {
    case Bug::wake_lost:
      if (process.dice_.chance(0.02)) return;
      break;
    case Bug::woken_in_reverse:
      process.woken_.push_back(request.self);
      return;
    default:
      break;
  }
  process.answered(request.self);
}

void Process::answered(Requests::iterator request) {
  Line& line = lines_[request->resource.get()];
  if (request->waiter->permit) check_order(*request);
  request->state = Request::State::answered;
  step_out(line, *request);
  shared_.served[request->resource->policy().name() + request->resource->name()] =
      shared_.events.now();
  if (const auto refusal = request->waiter->refusal) {
    ++reached_.refused;
    const bool calm = shared_.calm && calm_since_ != SteadyTime{} &&
                      shared_.events.now() > calm_since_ + seconds{10};
    if ((*refusal == Refusal::store_unavailable && calm) ||
        (*refusal == Refusal::limit && request->patient) ||
        (*refusal == Refusal::draining && !stopping_)) {
      shared_.judge.fail("refused_without_reason", "refusal " +
                                                       std::to_string(static_cast<int>(*refusal)) +
                                                       " on w" + std::to_string(replica_));
    }
    later(Duration{0}, [this, request] { requests_.erase(request); });
    return;
  }
  const bool slow = !shared_.calm && dice_.chance(shared_.plan.slow_sends);
  later(slow ? dice_.between(Duration{0}, seconds{4}) : dice_.between(Duration{0}, milliseconds{3}),
        [this, request] { send(request); });
}

// A tenant of whom nobody waits any more starts over.
void Process::step_out(Line& line, const Request& request) {
  std::erase(line.waiting, &request);
  const bool more = std::any_of(line.waiting.begin(), line.waiting.end(),
                                [&](const Request* r) { return r->tenant == request.tenant; });
  if (!more) line.passed.erase(request.tenant);
}

// First come, first served; or, in a fair line, each tenant's first in turn.
void Process::check_order(const Request& request) {
  Line& line = lines_[request.resource.get()];
  const bool fair = limits_.now(request.rule).queue == Queue::fair;
  std::set<std::string> others;
  for (const Request* other : line.waiting) {
    if (other == &request) continue;
    if (fair && other->tenant != request.tenant) {
      others.insert(other->tenant);
      continue;
    }
    const auto mine = std::find(line.waiting.begin(), line.waiting.end(), &request);
    if (std::find(line.waiting.begin(), mine, other) != mine) {
      shared_.judge.fail("order", "overtaken on " + request.resource->policy().name() + ":" +
                                      request.resource->name() + " of w" +
                                      std::to_string(replica_));
    }
    break;
  }
  if (!fair) return;
  line.passed.erase(request.tenant);
  std::erase_if(line.passed, [&](const auto& entry) { return !others.contains(entry.first); });
  for (const std::string& other : others) {
    if (++line.passed[other][request.tenant] > 1) {
      shared_.judge.fail("fairness", request.tenant + " was served twice while " + other +
                                         " waited on " + request.resource->name());
    }
  }
}

void Process::send(Requests::iterator request) {
  Permit& permit = request->waiter->permit;
  if (!permit.good(clock_.now()) && shared_.bug != Bug::sent_without_a_look) {
    // Its window has ended meanwhile: again from the start.
    ++reached_.spoiled;
    permit.settle();
    return take(request);
  }
  permit.spend();
  request->state = Request::State::sent;
  record(*request);
  if (shared_.on_sent) shared_.on_sent(replica_);
  if (shared_.bug == Bug::spent_twice && dice_.chance(0.05)) record(*request);
  if (shared_.bug == Bug::settled_when_sent && dice_.chance(0.1)) permit.settle();
  later(dice_.gap(shared_.plan.rules[request->rule].serving), [this, request] { finish(request); });
}

void Process::record(Request& request) {
  const std::shared_ptr<Batch> batch = batch_of(request.waiter->permit);
  const Books& books = request.resource->books;
  const auto claim = books.held.find(batch->claim);
  ++reached_.arrivals;
  const Limit& limit = limits_.now(request.rule);
  if (batch->sole) return record_sole(request, *batch, limit);
  if (claim == books.held.end() || claim->second.keys.empty()) {
    if (shared_.bug == Bug::sent_without_a_look) return;  // its window is no longer known
    return shared_.judge.fail("not_covered",
                              "sent on a claim that was given back, " + request.resource->name());
  }
  Arrival arrival;
  arrival.range = Judge::place_of(claim->second.keys.front())->range;
  arrival.lease = claim->second.lease->id;
  arrival.mode = batch->mode;
  arrival.claim = number_ << 40 | batch->claim;
  arrival.claim_units = claim->second.units();
  arrival.window = limit.window;
  arrival.clock = clock_.wall_now();
  arrival.most =
      limits_.most_since(request.rule, shared_.events.now() - 2 * limit.window - seconds{10});
  request.arrivals.push_back(shared_.judge.arrived(arrival));
  const auto lost = lost_leases_.find(arrival.lease);
  if (lost != lost_leases_.end() && shared_.events.now() > lost->second + kFenced) {
    shared_.judge.fail("loss_not_reported",
                       "sent on a lease that was lost " +
                           std::to_string(in_seconds(shared_.events.now() - lost->second)) +
                           " s ago");
  }
  if (aligned(limit.mode) && request.arrived_at != WallTime{} &&
      window_at(request.arrived_at, limit.window) < window_at(arrival.clock, limit.window) &&
      shared_.events.now() > request.since) {
    ++reached_.rolled_with_waiters;
  }
}

void Process::record_sole(Request& request, const Batch& batch, const Limit& limit) {
  Arrival arrival;
  arrival.range = request.resource->policy().name() + ":" + request.resource->name() + "@";
  arrival.range += aligned(batch.mode) ? utc_text(batch.window_end - limit.window) : "in_flight";
  arrival.mode = batch.mode;
  arrival.window = limit.window;
  arrival.clock = clock_.wall_now();
  arrival.most = limits_.most_since(request.rule, shared_.events.now() - kHeldBack);
  arrival.sole = true;
  request.arrivals.push_back(shared_.judge.arrived(arrival));
}

void Process::finish(Requests::iterator request) {
  for (const std::uint64_t number : request->arrivals) shared_.judge.ended(number);
  if (shared_.bug == Bug::never_settled && dice_.chance(0.1)) {
    request->arrivals.clear();
    return;  // and is kept for ever
  }
  requests_.erase(request);
  if (shared_.on_served) shared_.on_served(replica_);
}

// The client has gone. One that has its permit gives it back unspent; one that was sent goes on.
void Process::leave(Requests::iterator request) {
  if (request->state != Request::State::waiting) return;
  if (!request->resource->allowance()->leave(*request->waiter)) return;
  ++reached_.left;
  step_out(lines_[request->resource.get()], *request);
  requests_.erase(request);
}

std::string Process::range_of(const Resource& resource, const Limit& limit) {
  std::string range = resource.policy().name() + ":" + resource.name() + "@";
  if (limit.mode == Mode::sliding) return range + "sliding";
  if (limit.mode == Mode::in_flight) return range + "in_flight";
  return range + utc_text(window_at(latest_, limit.window).start);
}

void Process::inspect(bool calm) {
  if (!alive() || paused_) return;
  latest_ = std::max(latest_, clock_.wall_now());
  if (calm && calm_since_ == SteadyTime{}) calm_since_ = shared_.events.now();
  for (auto line = lines_.begin(); line != lines_.end();) {
    if (line->second.waiting.empty()) {
      line = lines_.erase(line);
      continue;
    }
    if (calm) inspect_line(line->second);
    ++line;
  }
  if (calm && !lost_leases_.empty() && core_->stats().leases_lost == 0 &&
      shared_.events.now() > calm_since_ + seconds{30}) {
    shared_.judge.fail("loss_not_reported",
                       "w" + std::to_string(replica_) + " lost a lease and does not say so");
  }
}

void Process::inspect_line(Line& line) {
  const SteadyTime now = shared_.events.now();
  const std::size_t rule = limits_.index_of(line.resource->policy().name());
  const Limit& limit = limits_.now(rule);
  const std::string where = line.resource->policy().name() + ":" + line.resource->name() + " on w" +
                            std::to_string(replica_);
  // A clock that was set back keeps its window until time has caught up, and nobody may use that
  // for ever: those who wait, wait for the next.
  const bool held_up =
      aligned(limit.mode) && clock_.wall_now() < window_at(set_back_at_, limit.window).end();
  const std::string range = range_of(*line.resource, limit);
  const bool by_arrivals = shared_.plan.sole && counted_here(limit.mode);
  const std::int64_t used = by_arrivals ? shared_.judge.counted(range) : shared_.judge.used(range);
  const bool free = !held_up && used < limit.units;
  const auto lasts = [now](std::optional<SteadyTime>& since, bool is, seconds bound) {
    if (!is) {
      since.reset();
      return false;
    }
    if (!since) since = now;
    return now > *since + bound;
  };
  const bool in_hand = line.resource->allowance()->summary().in_hand > 0;
  const Request& first = *line.waiting.front();
  // One who came later has waited for less long than the unit was free.
  if (first.since + kFree > now) line.free_since.reset();
  // Other units, one after another, may be free for a moment each.
  const SteadyTime full_at = shared_.judge.full_at(range);
  if (line.free_since && full_at > *line.free_since) line.free_since = full_at;
  if (lasts(line.free_since, free, kFree)) {
    shared_.judge.fail("waits_while_free", where);
  }
  if (lasts(line.in_hand_since, in_hand, kInHand)) {
    shared_.judge.fail("waits_while_free", where + " has units in hand");
  }
  if (!first.patient && now > std::max(first.since, calm_since_) + kFree) {
    shared_.judge.fail("waits_while_free", where + ": an impatient one waits");
  }
  SteadyTime& latest = shared_.served[line.resource->policy().name() + line.resource->name()];
  if (held_up) latest = now;
  const SteadyTime served = std::max({latest, first.since, calm_since_});
  if (now > served + kNoProgress + 2 * limit.window) shared_.judge.fail("not_served", where);
}

}  // namespace weir::sim
