#pragma once

// Keeps every resource of this replica supplied with units, and no more than the limit allows over
// all replicas. Workers find a resource and take from its allowance; whatever they find missing is
// claimed here, by one transaction at a time for each resource; but for limits that nobody else
// counts, whose allowances need it only to tell those in line when a window begins.
//
// Owned by the coordination loop. The functions marked so may be called from any thread.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "coordination/base/clock.h"
#include "coordination/base/random.h"
#include "coordination/claim_size.h"
#include "coordination/keyspace.h"
#include "coordination/leases.h"
#include "coordination/options.h"
#include "coordination/resource.h"
#include "coordination/store.h"
#include "coordination/store_health.h"

namespace weir {

struct CoordinatorOptions {
  std::string prefix = "/weir/v1";
  std::string replica = "weir";
  std::size_t max_resources = 100'000;
  std::chrono::milliseconds store_timeout{1'000};  // one transaction
  std::chrono::seconds clock_skew{40};             // how far the replicas' wall clocks may be apart
  // How long an in_flight lease lasts without being kept alive.
  std::chrono::seconds kept_ttl{15};
  OnStoreFailure on_store_failure = OnStoreFailure::reject;
  bool sole = false;  // no other process counts these limits: what this one does not need to claim,
                      // its allowances have by themselves
};

// Counts, written by the coordination loop and read by whoever renders metrics.
struct CoordinatorStats {
  std::atomic<std::uint64_t> granted{0}, short_of{0}, conflict{0}, unknown{0}, failed{0};
  // Unknown transactions by what became of them.
  std::atomic<std::uint64_t> found_applied{0}, found_absent{0};
  std::atomic<std::uint64_t> leases_lost{0};
  std::atomic<bool> store_up{true};
  // Without the store: before the last time, and since when this time.
  std::atomic<SteadyTime::rep> degraded_before{0}, down_since{0};
  // How long claims took, from the first send to the answer.
  static constexpr std::array<double, 12> kBounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                                  0.01,   0.025,   0.05,   0.1,   0.5,    2};
  std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> claim_seconds{};
  std::atomic<double> claim_seconds_sum{0};
};

// One resource as the admin address tells it.
struct ResourceView {
  std::string name, rule, window;
  std::int64_t used = 0, limit = 0, in_hand = 0;
  std::size_t waiting = 0;
  std::optional<WallTime> next_free;
};

class Coordinator {
 public:
  // `wake` is called by any thread when run() has something to do.
  Coordinator(const Clock& clock, Random& random, Store& store, CoordinatorOptions options,
              std::function<void()> wake);
  ~Coordinator();

  // -- any thread
  // The policy of that name; made when first asked for, and it stays where it is.
  Policy& policy(const std::string& name);
  const Policy* find_policy(const std::string& name) const;  // nullptr: there is none
  void each_policy(const std::function<void(const Policy&)>& visit) const;
  std::shared_ptr<Resource> find(Policy& policy, std::string_view resource) {
    return table_.find(policy, resource);
  }
  WaitingRoom& room() { return room_; }
  const CoordinatorStats& stats() const { return stats_; }
  const ResourceTable& resources() const { return table_; }
  std::chrono::duration<double> degraded() const;  // for how long it has been without the store
  ResourceView view(Resource& resource) const;
  // Whether units of such a limit are counted by their allowances alone, and never claimed.
  bool counts_here(Mode mode) const { return options_.sole && counted_here(mode); }

  // -- the coordination loop
  // Limits of rules, by name; those not named stay. Hold from the next claim on.
  void configure(const std::vector<std::pair<std::string, Limit>>& limits,
                 std::size_t max_resources, std::size_t max_waiting);
  // Does what has been asked for and what is due.
  void run();
  std::optional<SteadyTime> next_due() const;
  // The store for whoever else has to do with it: all calls count for its health.
  Store& store() { return health_; }
  // The names of all live replicas, sorted, as far as is known.
  void set_replicas(const std::vector<std::string>& names);
  // The store is not the one it was: what was claimed in the old one is unknown to the new. Nothing
  // is claimed in a window that the change lies in, whoever else has used it.
  void store_replaced();
  // Nobody waits any more: who is in line where nothing is left is refused, and so is who would
  // join it there.
  void drain();
  // Gives back what was never spent; `done` is called when that has been answered.
  void stop(std::function<void()> done);
  // What the store holds for a resource now, also one that nobody here has asked for: units by
  // replica. Nothing if it does not say.
  using Claims = std::map<std::string, std::int64_t>;
  void inspect(const Policy& policy, std::string_view resource,
               std::function<void(std::optional<Claims>)> callback);

 private:
  using Shared = std::shared_ptr<Resource>;

  Instant now() { return {clock_.steady_now(), forward_.read(clock_.wall_now())}; }
  bool all_given_back() const;
  void asked(Resource& resource);
  void again(const Shared& resource);
  void wake_at(Resource& resource, SteadyTime at);

  // One look at one resource, and what follows from it, in this order.
  void turn(const Shared& resource);
  void roll(Resource& resource, const Instant& now);
  void sample_rate(Resource& resource, const Allowance::Demand& demand, const Instant& now);
  void note_returns(Resource& resource, const Allowance::Demand& demand, const Instant& now);
  void withdraw_idle(Resource& resource, const Allowance::Demand& demand, const Instant& now);
  void withdraw_excess(Resource& resource);
  void check_store(Resource& resource, const Instant& now);
  void store_is_back(Resource& resource, const Instant& now);
  bool claim_alone(Resource& resource, const Allowance::Demand& demand, const Instant& now);
  bool renew(const Shared& resource, const Allowance::Demand& demand, const Instant& now);
  bool give_back(const Shared& resource);
  void claim(const Shared& resource, const Allowance::Demand& demand, const Instant& now);
  ClaimFacts facts_of(const Books& books, const Allowance::Demand& demand,
                      const Instant& now) const;
  bool lets_others_first(Resource& resource, const ClaimFacts& facts, const Instant& now);
  std::shared_ptr<LeaseSlot> lease_for(const Shared& resource, const Instant& now);
  void tell(Resource& resource, const Instant& now);
  void see_to_line(Resource& resource, const Allowance::Demand& demand, const Instant& now);

  void close_books(Resource& resource);
  std::int64_t withdraw(Resource& resource, Claim& claim, std::int64_t units);
  std::int64_t own_share(const Limit& limit) const;
  std::int64_t fair_share(const Books& books) const;
  Claim new_claim(const Books& books, const std::shared_ptr<LeaseSlot>& lease, std::int64_t units,
                  const Instant& now);
  Claim renewed(const Claim& old, const std::shared_ptr<LeaseSlot>& lease, std::int64_t units,
                const Instant& now);
  bool may_begin_alone(const Books& books, const Instant& now) const;
  bool keeps_to_share(const Books& books, const Instant& now) const;
  std::optional<SteadyTime> closed_until(const Books& books, const Instant& now) const;
  void full(Resource& resource, const Allowance::Demand& demand, const Instant& now);
  void shrink_claim(const Shared& resource);
  void send(const Shared& resource, Pending pending);
  void resend(const Shared& resource);
  void on_answer(const Shared& resource, std::uint64_t number, Answer<TxnAnswer> answer);
  void on_failure(const Shared& resource, const StoreError& error);
  void on_claim(Resource& resource, Pending& pending, const TxnAnswer& answer);
  void granted(Resource& resource, Claim claim, SteadyTime first_sent);
  void take_reading(Resource& resource, const TxnAnswer& answer);
  SteadyTime::duration backoff(int tries);
  void lease_lost(const std::shared_ptr<LeaseSlot>& slot);
  void store_went_down(SteadyTime now);
  void store_came_back();
  void probe();
  void start_watch();
  void on_events(std::span<const WatchEvent> events);
  void clear_late_copy(const Shared& resource, const KeyValue& entry);
  void clear_strays();
  void expect_late_copies(Resource& resource, const Pending& pending);
  void forget_if_empty(Resource& resource);

  const Clock& clock_;
  Random& random_;
  const CoordinatorOptions options_;
  StoreHealth health_;
  const Keyspace keys_;
  const std::function<void()> wake_;
  WaitingRoom room_;
  CoordinatorStats stats_;
  ForwardTime forward_;
  int live_replicas_ = 1;
  std::optional<int> own_index_;  // among them; nothing: not known
  // The same when the store was last lost: who shares what it cannot count.
  int sharers_ = 1;
  std::optional<int> own_place_;
  // Of the store, the last time:
  std::optional<Instant> down_at_, replaced_at_;
  Instant back_at_{};

  mutable std::mutex policies_mutex_;
  std::map<std::string, std::unique_ptr<Policy>> policies_;  // guarded by policies_mutex_

  std::mutex asked_mutex_;
  std::vector<Shared> asked_;  // guarded by asked_mutex_
  std::vector<Shared> again_;  // asked for by the loop itself
  bool running_ = false;

  ResourceTable table_;
  Leases leases_;
  // Stands in for a lease where a claim needs none.
  const std::shared_ptr<LeaseSlot> unrecorded_;
  std::unique_ptr<Watch> watch_;
  std::uint64_t next_seq_ = 1;
  std::uint64_t next_number_ = 1;  // of claims, transactions and wake-ups

  // When to look at which resource again: at most one entry for each, as its books know.
  struct Due {
    SteadyTime at;
    std::uint64_t order;
    std::weak_ptr<Resource> resource{};
    friend bool operator<(const Due& a, const Due& b) {
      return std::tie(a.at, a.order) < std::tie(b.at, b.order);
    }
  };
  std::set<Due> due_;
  SteadyTime probe_at_{};     // while the store is down: when to ask whether it is back
  SteadyTime watch_again_{};  // when to watch, or to watch anew
  std::vector<OwnKey> strays_;
  SteadyTime strays_again_{};

  std::size_t under_way_ = 0;  // transactions
  bool stopping_ = false;
  std::function<void()> stopped_;
};

}  // namespace weir
