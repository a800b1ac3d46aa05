#pragma once

// One replica's way to the store, on which everything can happen that happens to messages: they
// take time, get lost before or after they were applied, are applied twice, or seconds after their
// sender has given up. What is applied when is true time's; what the replica hears goes through
// `deliver`, so that one that is paused hears it later, and one that has crashed never.
//
// Some deliberate bugs are made here.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordination/memory_store.h"
#include "coordination/store.h"
#include "tests/simulation/judge.h"
#include "tests/simulation/plan.h"
#include "tests/simulation/world.h"

namespace weir::sim {

// What all replicas share.
struct Shared {
  const Plan& plan;
  const Bug bug;
  Events& events;
  MemoryStore& store;
  Judge& judge;
  Dice& dice;
  std::map<std::string, SteadyTime> served;  // when somebody was last answered, by resource
  bool calm = false;                         // no more faults
  SteadyTime away_until{};                   // the store
  std::uint64_t traffic = 0;                 // messages to the store
  // A request of that replica has reached the upstream, or has been served; for who counts use.
  std::function<void(int replica)> on_sent{}, on_served{};
};

class FaultyStore final : public Store {
 public:
  using Deliver = std::function<void(std::function<void()>)>;
  // `limit_of` says the limit of a rule as this replica has it now.
  FaultyStore(Shared& shared, milliseconds timeout, Deliver deliver,
              std::function<std::int64_t(const std::string& rule)> limit_of)
      : shared_(shared),
        timeout_(timeout),
        deliver_(std::move(deliver)),
        limit_of_(std::move(limit_of)) {}

  void txn(Txn txn, Callback<TxnAnswer> callback) override;
  void grant(LeaseId lease, seconds ttl, Callback<LeaseTerm> callback) override;
  void keep_alive(LeaseId lease, Callback<LeaseTerm> callback) override;
  void revoke(LeaseId lease, Callback<LeaseTerm> callback) override;
  std::unique_ptr<Watch> watch(KeyRange range, Revision from, WatchHandler handler) override;

  // -- mishaps
  void lose_watches();
  // Ends one of its leases in the store, which the replica is not told. 0: it has none.
  LeaseId lose_a_lease();
  void cut_off_until(SteadyTime until) { away_until_ = until; }
  // How long its messages take at most, one way, whatever the plan says for all.
  void set_distance(Duration distance) { distance_ = distance; }

  // Whether a lease was asked for to be kept alive.
  const std::set<LeaseId>& kept() const { return kept_; }

 private:
  class Subscription;

  // Sends a message: `apply` is called for each time it is applied and says the answer; `told` is
  // called once.
  enum class Copies { one, maybe_two };
  template <class T>
  void send(std::function<Answer<T>()> apply, Callback<T> told, Copies copies = Copies::maybe_two);
  Duration delay();
  bool fault(double chance);
  void damage(Txn& txn) const;
  Answer<TxnAnswer> damaged(const Txn& sent, Answer<TxnAnswer> answer) const;
  static bool is_claim(const Txn& txn);

  Shared& shared_;
  const milliseconds timeout_;
  const Deliver deliver_;
  const std::function<std::int64_t(const std::string&)> limit_of_;
  SteadyTime away_until_{};
  std::optional<Duration> distance_;
  std::vector<LeaseId> leases_;
  std::set<LeaseId> kept_;
  std::map<std::string, std::int64_t> first_sent_under_;  // by key: the limit
  std::vector<std::weak_ptr<WatchHandler>> watches_;
};

}  // namespace weir::sim
