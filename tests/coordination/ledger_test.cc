// The transactions of the ledger on a store, and copies of them that come late.

#include "coordination/ledger.h"

#include <gtest/gtest.h>

#include "coordination/keyspace.h"
#include "tests/coordination/virtual_world.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

const std::string kClaims = "/weir/v1/claims/default:/a@in_flight/";

class LedgerTest : public testing::Test {
 protected:
  std::shared_ptr<LeaseSlot> lease(LeaseId id) {
    store_.grant(id, 60s, [](Answer<LeaseTerm>) {});
    auto slot = std::make_shared<LeaseSlot>();
    slot->id = id;
    return slot;
  }
  Claim claim(const std::string& key, std::int64_t units, LeaseId id) {
    Claim made;
    made.keys = {kClaims + key};
    made.units_per_key = units;
    made.lease = lease(id);
    return made;
  }
  TxnAnswer apply(const Txn& txn) {
    TxnAnswer told;
    store_.txn(txn,
               [&](Answer<TxnAnswer> answer) { told = std::get<TxnAnswer>(std::move(answer)); });
    return told;
  }
  Account account() { return read_claims(apply(read_txn(kClaims)), "r1").account; }

  ManualClock clock_;
  MemoryStore store_{clock_};
};

TEST_F(LedgerTest, AClaimFailsIfAnyKeyWasCreatedSinceTheUsageWasRead) {
  const Account before = account();
  EXPECT_TRUE(apply(claim_txn(kClaims, before, claim("r2-1", 1, 7))).succeeded);
  const TxnAnswer lost = apply(claim_txn(kClaims, before, claim("r1-1", 1, 8)));
  EXPECT_FALSE(lost.succeeded);
  EXPECT_EQ(read_claims(lost, "r1").account.used, 1);
}

TEST_F(LedgerTest, AClaimIsNotDisturbedByOthersThatShrinkOrGo) {
  const Claim big = claim("r2-1", 5, 7);
  const Claim other = claim("r2-2", 1, 8);
  apply(claim_txn(kClaims, account(), big));
  apply(claim_txn(kClaims, account(), other));
  const Account before = account();
  ASSERT_TRUE(apply(shrink_txn(kClaims, big, 2)).succeeded);
  const OwnKey gone{other.keys.front(), 8};
  ASSERT_TRUE(apply(delete_txn(kClaims, std::span{&gone, 1})).succeeded);
  EXPECT_TRUE(apply(claim_txn(kClaims, before, claim("r1-1", 1, 9))).succeeded);
  EXPECT_EQ(account().used, 4);
}

TEST_F(LedgerTest, AShrinkingThatComesLateDoesNotMakeTheClaimGrowAgain) {
  Claim big = claim("r1-1", 5, 7);
  apply(claim_txn(kClaims, account(), big));
  const Txn first = shrink_txn(kClaims, big, 1);
  ASSERT_TRUE(apply(first).succeeded);
  big.shrink(1);
  ASSERT_TRUE(apply(shrink_txn(kClaims, big, 2)).succeeded);
  EXPECT_FALSE(apply(first).succeeded);
  EXPECT_EQ(account().used, 2);
}

TEST_F(LedgerTest, ADeletionThatComesLateDoesNotTakeAKeyOfTheSameNameWithIt) {
  const Claim old = claim("r1-1", 1, 7);
  apply(claim_txn(kClaims, account(), old));
  const OwnKey gone{old.keys.front(), 7};
  const Txn deletion = delete_txn(kClaims, std::span{&gone, 1});
  ASSERT_TRUE(apply(deletion).succeeded);
  // A process of the same name that was started later, and counts from the beginning.
  ASSERT_TRUE(apply(claim_txn(kClaims, account(), claim("r1-1", 1, 8))).succeeded);
  EXPECT_FALSE(apply(deletion).succeeded);
  EXPECT_EQ(account().used, 1);
}

TEST(LateCopy, OfAClaimWhoseUnitHasGoneBackIsCleared) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.replicas = 2});
  Limit limit;
  limit.units = 1;
  limit.mode = Mode::in_flight;
  world.limit(limit);
  world.request("/a").reset();
  world.pass(2s);
  ASSERT_TRUE(world.keys(kClaims).empty());
  for (const Txn& txn : world.way().sent()) {
    if (!txn.then.empty() && std::holds_alternative<Put>(txn.then.back())) {
      world.store.txn(txn, [](Answer<TxnAnswer>) {});
    }
  }
  world.pass(2s);
  EXPECT_TRUE(world.keys(kClaims).empty());
  EXPECT_TRUE(world.request("/a", 1)->started());
}

TEST(LostLease, IsReplacedAtOnce) {
  VirtualWorld world("2026-11-18T12:00:10Z");
  Limit limit;
  limit.units = 1;
  limit.mode = Mode::in_flight;
  world.limit(limit);
  world.request("/a").reset();
  LeaseId lease = 0;
  for (const Txn& txn : world.way().sent()) {
    for (const Op& op : txn.then) {
      if (const auto* put = std::get_if<Put>(&op)) lease = put->lease;
    }
  }
  world.pass(1s);
  world.store.revoke(lease, [](Answer<LeaseTerm>) {});
  const auto next = world.request("/a");
  world.pass(200ms);
  EXPECT_TRUE(next->started());
  EXPECT_EQ(world.replica().stats().leases_lost, 1u);
}

}  // namespace
}  // namespace weir
