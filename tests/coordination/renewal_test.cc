// Claims that are renewed in place, shrunk and returned, with copies of every transaction that come
// late: whatever the order, the units in the store never exceed the limit.

#include <gtest/gtest.h>

#include <map>

#include "coordination/keyspace.h"
#include "coordination/ledger.h"
#include "tests/coordination/virtual_world.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

const std::string kClaims = "/weir/v1/claims/default:/a@sliding/";

// Replicas that do what the coordinator may do, in any order, each with one transaction at a time.
class Disorder {
 public:
  explicit Disorder(std::uint64_t seed) : random_(seed) { replicas_.resize(3); }

  void step() {
    clock_.pass(1ms);
    const auto dice = random_.below(100);
    Replica& replica = replicas_[random_.below(replicas_.size())];
    if (dice < 30 && !late_.empty()) {
      apply(late_[random_.below(late_.size())]);  // and again, some time
    } else if (dice < 33 && !replica.held.empty()) {
      by_hand(some(replica)->second.keys.front());
    } else if (dice < 55 && !replica.held.empty()) {
      replica.renew(*this);
    } else if (dice < 65 && !replica.held.empty()) {
      replica.shrink(*this);
    } else if (dice < 80 && !replica.held.empty()) {
      replica.give_back(*this);
    } else {
      replica.claim(*this);
    }
    most_ = std::max(most_, used());
  }
  std::int64_t most() const { return most_; }
  int renewals() const { return renewals_; }

  static constexpr std::int64_t kLimit = 9;

 private:
  struct Replica {
    Account known;
    std::map<int, Claim> held;
    std::string name;

    void learn(const TxnAnswer& told, Disorder& of) {
      const Reading reading = read_claims(told, name);
      known = reading.account;
      of.seq_ = std::max(of.seq_, reading.own_seq);
    }
    void claim(Disorder& of) {
      if (name.empty()) name = "r" + std::to_string(this - of.replicas_.data());
      const std::int64_t left = kLimit - known.used;
      if (left <= 0) return learn(of.now(read_txn(kClaims)), of);
      Claim claim;
      claim.lease = of.lease();
      claim.at = of.clock_.wall_now();
      const auto units =
          1 + static_cast<std::int64_t>(of.random_.below(static_cast<std::uint64_t>(left)));
      const bool one_key = of.random_.below(2) == 0;
      claim.units_per_key = one_key ? units : 1;
      for (std::int64_t i = 0; i < (one_key ? 1 : units); ++i) {
        claim.keys.push_back(kClaims + name + "-" + std::to_string(++of.seq_));
      }
      const Txn txn = claim_txn(kClaims, known, claim);
      if (of.random_.below(3) == 0) return of.late(txn);  // it is given up
      const TxnAnswer told = of.now(txn);
      if (claim_result(told, claim) == ClaimResult::conflict) return learn(told, of);
      known.used += claim.units();
      known.revision = told.revision;
      held.emplace(++of.number_, claim);
    }
    void renew(Disorder& of) {
      const auto one = of.some(*this);
      std::vector<Claim> old{one->second}, next{one->second};
      held.erase(one);
      next[0].lease = of.lease();
      next[0].at = std::max<WallTime>(of.clock_.wall_now(), old[0].at + 1ms);
      next[0].shrunk_from = 0;
      if (next[0].keys.size() > 1) next[0].keys.pop_back();
      if (next[0].units_per_key > 1 && of.random_.below(2) == 0) next[0].shrink(1);
      const TxnAnswer told = of.now(renew_txn(kClaims, old, next));
      learn(told, of);
      if (claim_result(told, next[0]) == ClaimResult::conflict) return;
      ++of.renewals_;
      held.emplace(++of.number_, next[0]);
    }
    void shrink(Disorder& of) {
      Claim& claim = of.some(*this)->second;
      if (claim.units_per_key < 2) return;
      const Txn txn = shrink_txn(kClaims, claim, 1);
      claim.shrink(1);
      learn(of.now(txn), of);
    }
    void give_back(Disorder& of) {
      const auto one = of.some(*this);
      std::vector<OwnKey> keys;
      for (const auto& key : one->second.keys) keys.push_back({key, one->second.lease->id});
      held.erase(one);
      learn(of.now(delete_txn(kClaims, keys)), of);
    }
  };

  std::map<int, Claim>::iterator some(Replica& replica) {
    return std::next(replica.held.begin(),
                     static_cast<std::ptrdiff_t>(random_.below(replica.held.size())));
  }
  std::shared_ptr<LeaseSlot> lease() {
    auto slot = std::make_shared<LeaseSlot>();
    slot->id = ++lease_;
    store_.grant(slot->id, 3600s, [](Answer<LeaseTerm>) {});
    return slot;
  }
  TxnAnswer apply(const Txn& txn) {
    TxnAnswer told;
    store_.txn(txn,
               [&](Answer<TxnAnswer> answer) { told = std::get<TxnAnswer>(std::move(answer)); });
    most_ = std::max(most_, used());
    return told;
  }
  TxnAnswer now(const Txn& txn) {
    late(txn);
    return apply(txn);
  }
  void late(const Txn& txn) {
    late_.push_back(txn);
    if (late_.size() > 40) late_.erase(late_.begin());
  }
  void by_hand(const std::string& key) { apply({{}, {Delete{{key, ""}}}, {}}); }
  std::int64_t used() {
    std::int64_t units = 0;
    store_.txn(read_txn(kClaims), [&](Answer<TxnAnswer> answer) {
      units = read_claims(std::get<TxnAnswer>(answer), "").account.used;
    });
    return units;
  }

  ManualClock clock_;
  MemoryStore store_{clock_};
  SeededRandom random_;
  std::vector<Replica> replicas_;
  std::vector<Txn> late_;
  std::uint64_t seq_ = 0;
  LeaseId lease_ = 100;
  int number_ = 0, renewals_ = 0;
  std::int64_t most_ = 0;
};

TEST(Disorder, OfLateCopiesNeverBringsMoreIntoTheStoreThanTheLimit) {
  int renewals = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Disorder disorder(seed);
    for (int i = 0; i < 400; ++i) disorder.step();
    ASSERT_EQ(disorder.most(), Disorder::kLimit) << "seed " << seed;
    renewals += disorder.renewals();
  }
  EXPECT_GT(renewals, 500);
}

TEST(Renewal, KeepsTheKeysAndDisturbsNobody) {
  VirtualWorld world("2026-11-18T12:00:30Z", {.replicas = 2});
  world.limit(limit_of(10, Mode::sliding, 10s));
  VirtualWorld::Requests ours = world.requests(20, "/a", 0);
  VirtualWorld::Requests theirs = world.requests(20, "/a", 1);
  world.pass(1s);
  const auto before = world.keys(kClaims);
  ASSERT_EQ(before.size(), 10u);
  const std::size_t sent = world.way(0).sent().size() + world.way(1).sent().size();
  world.pass(11s);
  EXPECT_EQ(started(ours) + started(theirs), 20);
  EXPECT_EQ(world.keys(kClaims), before);
  EXPECT_LE(world.way(0).sent().size() + world.way(1).sent().size(), sent + 6)
      << "none of them lost a race";
}

}  // namespace
}  // namespace weir
