// Leases.

#include "tests/contract/store_contract.h"

namespace weir {

using namespace std::chrono_literals;
using Is = Compare::Is;
using Target = Compare::Target;
using Kind = StoreError::Kind;
using Names = std::vector<std::string>;

TEST_P(StoreContract, ALeaseIsGrantedAsAskedFor) {
  const LeaseId lease = fresh_lease();
  EXPECT_EQ(std::get<LeaseTerm>(grant(lease, 60s)).ttl, 60s);
  revoke(lease);
}

TEST_P(StoreContract, ATooShortLeaseIsMadeLongerAndTheAnswerSaysSo) {
  const LeaseId lease = fresh_lease();
  const auto term = std::get<LeaseTerm>(grant(lease, 1s));
  EXPECT_GE(term.ttl, 2s);
  EXPECT_EQ(std::get<LeaseTerm>(keep_alive(lease)).ttl, term.ttl);
  revoke(lease);
}

TEST_P(StoreContract, ALeaseOfATakenIdIsNotGranted) {
  const LeaseId lease = granted(60s);
  put("a", "v", lease);
  EXPECT_EQ(std::get<StoreError>(grant(lease, 90s)).kind, Kind::lease_exists);
  EXPECT_EQ(std::get<LeaseTerm>(keep_alive(lease)).ttl, 60s) << "the first one is as it was";
  EXPECT_EQ(at("a").lease, lease);
  revoke(lease);
}

TEST_P(StoreContract, APutWithALeaseThatIsNotThereUndoesTheWholeTransaction) {
  put("b");
  EXPECT_EQ(refusal_of({{}, {put_of("a"), Delete{one("b")}, put_of("c", "v", fresh_lease())}, {}}),
            Kind::lease_gone);
  EXPECT_EQ(names_in(under("")), Names{"b"});
}

TEST_P(StoreContract, OnlyTheBranchThatRunsNeedsItsLeases) {
  const Compare never{one("none"), Target::version, Is::equal, 1};
  const Put leased = put_of("b", "v", fresh_lease());
  EXPECT_TRUE(txn({{}, {put_of("a", "then")}, {leased}}).succeeded);
  EXPECT_EQ(at("a").value, "then");
  EXPECT_FALSE(txn({{never}, {leased}, {put_of("a", "otherwise")}}).succeeded);
  EXPECT_EQ(at("a").value, "otherwise");
  EXPECT_EQ(refusal_of({{never}, {put_of("c")}, {leased}}), Kind::lease_gone);
}

TEST_P(StoreContract, RevokingALeaseDeletesItsKeysAndNoOthers) {
  const LeaseId lease = granted(60s), other = granted(60s);
  put("a", "v", lease);
  put("b", "v", lease);
  put("c", "v", other);
  put("d");
  EXPECT_EQ(at("a").lease, lease);
  ASSERT_TRUE(std::holds_alternative<LeaseTerm>(revoke(lease)));
  EXPECT_EQ(names_in(under("")), (Names{"c", "d"}));
  revoke(other);
}

TEST_P(StoreContract, TheKeysOfARevokedLeaseGoInOneRevision) {
  const LeaseId lease = granted(60s);
  put("b", "v", lease);
  const Revision last = put("a", "v", lease);
  Seen seen;
  const auto watch = store().watch(under(""), last + 1, seen.handler());
  revoke(lease);
  wait_for([&] { return !seen.steps.empty(); });
  EXPECT_EQ(seen.told(key("")), Names{"deleted a, deleted b"});
}

TEST_P(StoreContract, ARevokedLeaseIsGone) {
  const LeaseId lease = granted(60s);
  revoke(lease);
  EXPECT_EQ(std::get<StoreError>(revoke(lease)).kind, Kind::lease_gone);
  EXPECT_EQ(std::get<LeaseTerm>(keep_alive(lease)).ttl, 0s);
  EXPECT_EQ(refusal_of({{}, {put_of("a", "v", lease)}, {}}), Kind::lease_gone);
  EXPECT_TRUE(std::holds_alternative<LeaseTerm>(grant(lease, 60s))) << "its id is free";
  revoke(lease);
}

TEST_P(StoreContract, ALeaseThatNeverWasIsToldLikeOneThatIsGone) {
  EXPECT_EQ(std::get<LeaseTerm>(keep_alive(fresh_lease())).ttl, 0s);
  EXPECT_EQ(std::get<StoreError>(revoke(fresh_lease())).kind, Kind::lease_gone);
}

TEST_P(StoreContract, APutWithoutALeaseDetachesTheKeyFromIt) {
  const LeaseId lease = granted(60s);
  put("a", "v", lease);
  put("a");
  EXPECT_EQ(at("a").lease, 0);
  revoke(lease);
  EXPECT_TRUE(get("a"));
}

TEST_P(StoreContract, APutWithAnotherLeaseMovesTheKeyToIt) {
  const LeaseId first = granted(60s), second = granted(60s);
  put("a", "v", first);
  put("a", "v", second);
  revoke(first);
  ASSERT_TRUE(get("a"));
  EXPECT_EQ(at("a").lease, second);
  revoke(second);
  EXPECT_FALSE(get("a"));
}

TEST_P(StoreContract, AKeyThatWasDeletedAndPutAnewIsNotOfItsOldLease) {
  const LeaseId lease = granted(60s);
  put("a", "v", lease);
  erase("a");
  put("a");
  revoke(lease);
  EXPECT_TRUE(get("a"));
}

TEST_P(StoreContract, AnExpiredLeaseTakesItsKeysWithIt) {
  const LeaseId lease = granted(2s);
  put("a", "v", lease);
  const Revision last = put("b", "v", lease);
  Seen seen;
  const auto watch = store().watch(under(""), last + 1, seen.handler());
  EXPECT_TRUE(get("a"));
  EXPECT_TRUE(comes_true([&] { return !get("a"); }));
  EXPECT_FALSE(get("b"));
  wait_for([&] { return !seen.steps.empty(); });
  EXPECT_EQ(seen.told(key("")), Names{"deleted a, deleted b"});
  EXPECT_EQ(std::get<LeaseTerm>(keep_alive(lease)).ttl, 0s);
  EXPECT_EQ(refusal_of({{}, {put_of("a", "v", lease)}, {}}), Kind::lease_gone);
}

TEST_P(StoreContract, KeepingALeaseAliveRenewsItsFullTime) {
  const LeaseId lease = granted(3s);
  put("a", "v", lease);
  under_test().pass(2s);
  EXPECT_EQ(std::get<LeaseTerm>(keep_alive(lease)).ttl, 3s);
  under_test().pass(2s);
  EXPECT_TRUE(get("a"));
  revoke(lease);
}

}  // namespace weir
