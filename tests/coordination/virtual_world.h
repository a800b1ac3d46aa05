#pragma once

// Replicas on one memory store in virtual time, for tests that tell a case step by step. Time moves
// only when a test says so, from one thing that is due to the next.

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "coordination/coordinator.h"
#include "coordination/memory_store.h"

namespace weir {

class ManualClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return steady_; }
  WallTime wall_now() const override { return wall_; }
  void pass(SteadyTime::duration time) {
    steady_ += time;
    wall_ += time;
  }
  void set_wall(WallTime wall) { wall_ = wall; }

 private:
  SteadyTime steady_{std::chrono::hours{1}};
  WallTime wall_{};
};

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override {  // splitmix64
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// A way to a store that can be cut: then every call is refused at once, and watches are lost.
class CutStore final : public Store {
 public:
  explicit CutStore(Store& store) : store_(&store) {}
  void cut() {
    cut_ = true;
    for (const auto& lost : std::exchange(lost_, {})) lost();
  }
  void mend() { cut_ = false; }
  void lead_to(Store& store) { store_ = &store; }
  // From here on answers of transactions and what watches tell are late: until they are let go.
  void hold() { held_ = true; }
  void let_go_events() { let_go(events_); }
  void let_go_answers() { let_go(answers_); }
  int calls() const { return calls_; }
  const std::vector<Txn>& sent() const { return sent_; }

  void txn(Txn txn, Callback<TxnAnswer> callback) override {
    sent_.push_back(txn);
    if (refused(callback)) return;
    store_->txn(std::move(txn), [this, callback](const Answer<TxnAnswer>& answer) {
      held_ ? answers_.push_back([callback, answer] { callback(answer); }) : callback(answer);
    });
  }
  void grant(LeaseId lease, std::chrono::seconds ttl, Callback<LeaseTerm> callback) override {
    if (!refused(callback)) store_->grant(lease, ttl, std::move(callback));
  }
  void keep_alive(LeaseId lease, Callback<LeaseTerm> callback) override {
    if (!refused(callback)) store_->keep_alive(lease, std::move(callback));
  }
  void revoke(LeaseId lease, Callback<LeaseTerm> callback) override {
    if (!refused(callback)) store_->revoke(lease, std::move(callback));
  }
  std::unique_ptr<Watch> watch(KeyRange range, Revision from, WatchHandler handler) override {
    lost_.push_back(handler.lost);
    const auto tell = std::exchange(
        handler.events,
        [this, tell = handler.events](Revision revision, std::span<const WatchEvent> events) {
          const std::vector<WatchEvent> kept(events.begin(), events.end());
          held_ ? events_.push_back([=] { tell(revision, kept); }) : tell(revision, events);
        });
    return store_->watch(std::move(range), from, std::move(handler));
  }

 private:
  template <class T>
  bool refused(const Callback<T>& callback) {
    ++calls_;
    if (cut_) callback(StoreError{StoreError::Kind::not_applied, "cut"});
    return cut_;
  }

  using Held = std::vector<std::function<void()>>;
  static void let_go(Held& held) {
    for (const auto& one : std::exchange(held, {})) one();
  }

  Store* store_;
  bool cut_ = false;
  bool held_ = false;
  Held answers_, events_;
  int calls_ = 0;
  std::vector<Txn> sent_;
  std::vector<std::function<void()>> lost_;
};

// One request: asks when made, remembers when it was let through.
class Request {
 public:
  Request(const Clock& clock, std::shared_ptr<Allowance> allowance, Queue order,
          std::string tenant = "", bool patient = true)
      : clock_(clock), allowance_(std::move(allowance)), tenant_(std::move(tenant)) {
    waiter_.wake = [](void* who) { static_cast<Request*>(who)->answered(); };
    waiter_.who = this;
    waiter_.tenant = tenant_;
    waiter_.patient = patient;
    if (allowance_->take(allowance_, waiter_, order, clock_.now()) != Allowance::Taken::waiting)
      answered();
  }
  ~Request() { leave(); }

  bool started() const { return started_.has_value(); }
  WallTime started_at() const { return *started_; }
  std::uint64_t order() const { return order_; }
  std::optional<Refusal> refusal() const { return waiter_.refusal; }
  bool waiting() const { return waiter_.in_line(); }
  void leave() {
    if (waiter_.in_line()) allowance_->leave(waiter_);
  }
  void finish() { waiter_.permit.settle(); }

 private:
  void answered() {
    if (!waiter_.permit) return;
    waiter_.permit.spend();
    started_ = clock_.wall_now();
    static std::uint64_t count = 0;
    order_ = ++count;
  }

  const Clock& clock_;
  const std::shared_ptr<Allowance> allowance_;
  const std::string tenant_;
  Waiter waiter_;
  std::optional<WallTime> started_;
  std::uint64_t order_ = 0;
};

class VirtualWorld {
 public:
  using Requests = std::vector<std::unique_ptr<Request>>;

  struct Options {
    int replicas = 1;
    std::size_t max_resources = 1000;
    OnStoreFailure on_store_failure = OnStoreFailure::reject;
    bool sole = false;  // the one replica is all that ever counts
  };

  // "2026-11-18T12:00:30Z"
  explicit VirtualWorld(std::string_view begin) : VirtualWorld(begin, Options{}) {}
  VirtualWorld(std::string_view begin, const Options& options) {
    clock.set_wall(*parse_utc(begin));
    std::vector<std::string> names;
    for (int i = 0; i < options.replicas; ++i) names.push_back("r" + std::to_string(i + 1));
    for (int i = 0; i < options.replicas; ++i) {
      randoms_.emplace_back(17 + i);
      ways_.emplace_back(store);
      replicas_.push_back(std::make_unique<Coordinator>(
          clock, randoms_.back(), ways_.back(),
          CoordinatorOptions{.replica = names[static_cast<std::size_t>(i)],
                             .max_resources = options.max_resources,
                             .on_store_failure = options.on_store_failure,
                             .sole = options.sole},
          [this] { woken_ = true; }));
      replicas_.back()->set_replicas(names);
    }
  }

  void limit(const Limit& limit) {
    for (auto& replica : replicas_) replica->configure({{"default", limit}}, 1000, 100'000);
    settle();
  }
  Coordinator& replica(std::size_t index = 0) { return *replicas_[index]; }
  CutStore& way(std::size_t replica = 0) { return ways_[replica]; }
  void cut_all() {
    for (CutStore& way : ways_) way.cut();
  }
  void mend_all() {
    for (CutStore& way : ways_) way.mend();
  }
  // By an empty one, as its owner is told.
  void replace_store() {
    replaced_ = std::make_unique<MemoryStore>(clock);
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      ways_[i].cut();
      ways_[i].mend();
      ways_[i].lead_to(*replaced_);
      replicas_[i]->store_replaced();
    }
  }

  // Without letting time pass, and without a look by the coordinator.
  std::unique_ptr<Request> ask(std::string_view resource, std::size_t replica = 0,
                               std::string tenant = "", bool patient = true) {
    Coordinator& at = *replicas_[replica];
    Policy& policy = at.policy("default");
    return std::make_unique<Request>(clock, at.find(policy, resource)->allowance(),
                                     policy.limit().queue, std::move(tenant), patient);
  }
  std::unique_ptr<Request> request(std::string_view resource, std::size_t replica = 0,
                                   std::string tenant = "", bool patient = true) {
    auto made = ask(resource, replica, std::move(tenant), patient);
    settle();
    return made;
  }
  Requests requests(int count, std::string_view resource, std::size_t replica = 0) {
    Requests made;
    for (int i = 0; i < count; ++i) made.push_back(request(resource, replica));
    return made;
  }

  // Everything that can happen now.
  void settle() {
    for (int turns = 0; woken_; ++turns) {
      if (turns > 10'000) throw std::runtime_error("the coordinators do not come to rest");
      woken_ = false;
      for (auto& replica : replicas_) replica->run();
      store.expire();
    }
  }
  void pass(std::chrono::milliseconds time) {
    settle();
    const SteadyTime end = clock.steady_now() + time;
    while (clock.steady_now() < end) {
      SteadyTime next = end;
      for (auto& replica : replicas_) {
        if (const auto due = replica->next_due()) next = std::min(next, *due);
      }
      if (const auto due = store.next_expiry()) next = std::min(next, *due);
      if (next > clock.steady_now()) clock.pass(next - clock.steady_now());
      woken_ = true;
      settle();
    }
  }
  void pass_until(std::string_view wall) {
    pass(
        std::chrono::duration_cast<std::chrono::milliseconds>(*parse_utc(wall) - clock.wall_now()));
  }

  std::vector<std::string> keys(const std::string& prefix = "/weir/v1/") {
    std::vector<std::string> names;
    store.txn({{}, {Read{keys_under(prefix)}}, {}}, [&](Answer<TxnAnswer> answer) {
      for (const KeyValue& entry :
           std::get<ReadAnswer>(std::get<TxnAnswer>(answer).answers[0]).keys) {
        names.push_back(entry.key);
      }
    });
    return names;
  }

  ManualClock clock;
  MemoryStore store{clock};

 private:
  bool woken_ = false;
  std::deque<SeededRandom> randoms_;
  std::deque<CutStore> ways_;
  std::unique_ptr<MemoryStore> replaced_;
  std::vector<std::unique_ptr<Coordinator>> replicas_;
};

inline Limit limit_of(std::int64_t units, Mode mode = Mode::started,
                      std::chrono::seconds window = std::chrono::seconds{60}) {
  Limit limit;
  limit.units = units;
  limit.mode = mode;
  limit.window = window;
  return limit;
}

inline int started(const VirtualWorld::Requests& requests) {
  int count = 0;
  for (const auto& request : requests) count += request->started() ? 1 : 0;
  return count;
}

}  // namespace weir
