#include "coordination/memory_store.h"

#include <gtest/gtest.h>

#include "tests/contract/store_contract.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

class HandClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return SteadyTime{} + passed; }
  WallTime wall_now() const override { return WallTime{} + passed; }

  std::chrono::seconds passed{1'000};
};

class MemoryUnderTest final : public StoreUnderTest {
 public:
  Store& store() override { return store_; }
  bool run_until(const std::function<bool()>& done) override { return done(); }
  void pass(std::chrono::seconds duration) override {
    clock_.passed += duration;
    store_.expire();
  }
  std::string prefix() override { return "test/"; }
  LeaseId fresh_lease() override { return ++last_lease_; }
  bool is_alone() const override { return true; }
  bool compact(Revision revision) override { return store_.compact(revision), true; }

 private:
  HandClock clock_;
  MemoryStore store_{clock_};
  LeaseId last_lease_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreContract,
                         testing::Values(StoreFactory{
                             "Memory", [] { return std::make_unique<MemoryUnderTest>(); }}));

// What only this store has.
class MemoryStoreTest : public testing::Test {
 protected:
  Revision put(const std::string& key, const std::string& value = "v", LeaseId lease = 0) {
    store_.txn({{}, {Put{key, value, lease}}, {}}, [](const auto&) {});
    return store_.revision();
  }
  std::int64_t count() {
    std::int64_t found = -1;
    store_.txn({{}, {Read{keys_under(""), 0, true}}, {}}, [&](const Answer<TxnAnswer>& answer) {
      found = std::get<ReadAnswer>(std::get<TxnAnswer>(answer).answers.front()).count;
    });
    return found;
  }
  void grant(LeaseId lease, std::chrono::seconds ttl) {
    store_.grant(lease, ttl, [](const auto&) {});
  }
  SteadyTime in(std::chrono::seconds duration) const { return clock_.steady_now() + duration; }

  HandClock clock_;
  MemoryStore store_{clock_, {.history = 8}};
};

TEST(KeysUnder, EndsAtTheFirstKeyThatDoesNotBeginWithThePrefix) {
  EXPECT_EQ(keys_under("a/").key, "a/");
  EXPECT_EQ(keys_under("a/").end, "a0");
  EXPECT_EQ(keys_under("a\xFF\xFF").end, "b");
  EXPECT_EQ(keys_under("\x7F").end, "\x80");
}

TEST(KeysUnder, HasNoEndIfNoKeyFollows) {
  const std::string open(1, '\0');
  EXPECT_EQ(keys_under("\xFF\xFF").key, "\xFF\xFF");
  EXPECT_EQ(keys_under("\xFF\xFF").end, open);
  EXPECT_EQ(keys_under("").key, open);
  EXPECT_EQ(keys_under("").end, open);
}

TEST_F(MemoryStoreTest, BeginsAtRevisionOneAndCountsChanges) {
  EXPECT_EQ(store_.revision(), 1);
  EXPECT_EQ(put("a"), 2);
  count();
  EXPECT_EQ(put("a"), 3);
}

TEST_F(MemoryStoreTest, ARangeToTheLastKeyHoldsKeysOfTheHighestBytes) {
  put("\xFE");
  put("\xFF\xFF\xFF");
  Seen seen;
  const auto watch = store_.watch(keys_under("\xFF"), 1, seen.handler());
  EXPECT_EQ(seen.told(""), Lines{"put \xFF\xFF\xFF=v"});
  EXPECT_EQ(count(), 2);
}

TEST_F(MemoryStoreTest, CallbacksRunBeforeTheCallReturnsAndWatchesAfterThem) {
  std::vector<std::string> order;
  const auto watch = store_.watch(
      keys_under(""), 0, {[&](Revision, const auto&) { order.emplace_back("watch"); }, [] {}});
  store_.txn({{}, {Put{"a", "v"}}, {}}, [&](const auto&) { order.emplace_back("callback"); });
  EXPECT_EQ(order, (Lines{"callback", "watch"}));
}

TEST_F(MemoryStoreTest, WatchesWaitUntilTheOutermostCallbackIsOver) {
  std::vector<std::string> order;
  const auto told = [&](Revision revision, const auto&) {
    order.push_back("watch " + std::to_string(revision));
  };
  const auto watch = store_.watch(keys_under(""), 0, {told, [] {}});
  store_.txn({{}, {Put{"a", "v"}}, {}}, [&](const auto&) {
    store_.txn({{}, {Put{"b", "v"}}, {}}, [&](const auto&) { order.emplace_back("inner"); });
    order.emplace_back("outer");
  });
  EXPECT_EQ(order, (Lines{"inner", "outer", "watch 2", "watch 3"}));
}

TEST_F(MemoryStoreTest, AHandlerThatWritesDoesNotOvertakeOtherWatches) {
  Seen seen;
  const auto echo = [&](Revision, std::span<const WatchEvent> events) {
    if (events.front().key.key == "a") put("b", events.front().key.value);
  };
  const auto first = store_.watch(keys_under(""), 0, {echo, [] {}});
  const auto second = store_.watch(keys_under(""), 0, seen.handler());
  put("a", "1");
  EXPECT_EQ(seen.told(""), (Lines{"put a=1", "put b=1"}));
}

TEST_F(MemoryStoreTest, AHandlerThatWritesWithoutEndDoesNotUseUpTheStack) {
  int left = 100'000;
  const auto again = [&](Revision, const auto&) {
    if (--left > 0) put("a");
  };
  const auto watch = store_.watch(keys_under(""), 0, {again, [] {}});
  put("a");
  EXPECT_EQ(left, 0);
}

TEST_F(MemoryStoreTest, AHandlerMayDestroyAWatchThatHasNotBeenToldYet) {
  Seen seen;
  std::unique_ptr<Watch> second;
  const auto first =
      store_.watch(keys_under(""), 0, {[&](Revision, const auto&) { second.reset(); }, [] {}});
  second = store_.watch(keys_under(""), 0, seen.handler());
  put("a");
  EXPECT_TRUE(seen.steps.empty());
}

TEST_F(MemoryStoreTest, AWatchBegunInACallbackOrHandlerIsToldOnlyWhatItAskedFor) {
  Seen from_now, from_then;
  std::unique_ptr<Watch> now, then;
  store_.txn({{}, {Put{"a", "1"}}, {}}, [&](const Answer<TxnAnswer>& answer) {
    now = store_.watch(keys_under(""), 0, from_now.handler());
    then = store_.watch(keys_under(""), std::get<TxnAnswer>(answer).revision, from_then.handler());
  });
  put("a", "2");
  EXPECT_EQ(from_now.told(""), Lines{"put a=2"});
  EXPECT_EQ(from_then.told(""), (Lines{"put a=1", "put a=2"}));
}

TEST_F(MemoryStoreTest, WhatAHandlerOwnsIsReleasedWithTheWatch) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> observer = owned;
  auto watch = store_.watch(keys_under(""), 0, {[owned](Revision, const auto&) {}, [] {}});
  owned.reset();
  EXPECT_FALSE(observer.expired());
  watch.reset();
  EXPECT_TRUE(observer.expired());
}

TEST(MemoryStore, AWatchMayOutliveIt) {
  HandClock clock;
  auto store = std::make_unique<MemoryStore>(clock);
  Seen seen;
  const auto watch = store->watch(keys_under(""), 0, seen.handler());
  store.reset();
  EXPECT_EQ(seen.lost, 0);
}

TEST_F(MemoryStoreTest, NextExpiryIsThatOfTheLeaseThatEndsFirst) {
  EXPECT_FALSE(store_.next_expiry());
  grant(1, 10s);
  grant(2, 5s);
  EXPECT_EQ(store_.next_expiry(), in(5s));
  clock_.passed += 3s;
  store_.keep_alive(2, [](const auto&) {});
  EXPECT_EQ(store_.next_expiry(), in(5s));
  store_.revoke(2, [](const auto&) {});
  EXPECT_EQ(store_.next_expiry(), in(7s));
  clock_.passed += 7s;
  store_.expire();
  EXPECT_FALSE(store_.next_expiry());
}

TEST_F(MemoryStoreTest, ALeaseEndsWhenItsTimeHasComeAndNotBefore) {
  grant(1, 5s);
  put("a", "v", 1);
  clock_.passed += 4s;
  store_.expire();
  EXPECT_EQ(count(), 1);
  clock_.passed += 1s;
  EXPECT_EQ(count(), 0) << "found by any call";
}

TEST_F(MemoryStoreTest, EveryExpiredLeaseIsOneRevisionInTheOrderOfTheirEnds) {
  grant(1, 7s);
  grant(2, 6s);
  grant(3, 5s);
  put("a", "v", 1);
  put("b", "v", 1);
  put("c", "v", 2);
  Seen seen;
  const auto watch = store_.watch(keys_under(""), 0, seen.handler());
  const Revision before = store_.revision();
  clock_.passed += 8s;
  EXPECT_EQ(store_.revision(), before) << "nothing happens by itself";
  store_.expire();
  EXPECT_EQ(seen.told(""), (Lines{"deleted c", "deleted a, deleted b"}));
  EXPECT_EQ(store_.revision(), before + 2) << "a lease without keys changes nothing";
}

TEST_F(MemoryStoreTest, AnExpiredIdCanBeGrantedAgainAtOnce) {
  grant(1, 5s);
  put("a", "v", 1);
  clock_.passed += 5s;
  Answer<LeaseTerm> answer;
  store_.grant(1, 6s, [&](Answer<LeaseTerm> got) { answer = std::move(got); });
  EXPECT_EQ(std::get<LeaseTerm>(answer).ttl, 6s);
  EXPECT_EQ(count(), 0);
}

TEST_F(MemoryStoreTest, ALeaseWhoseTimeHasComeCanNeitherBeRenewedNorRevoked) {
  grant(1, 5s);
  clock_.passed += 5s;
  Answer<LeaseTerm> renewed = LeaseTerm{9s}, revoked;
  store_.keep_alive(1, [&](Answer<LeaseTerm> got) { renewed = std::move(got); });
  EXPECT_EQ(std::get<LeaseTerm>(renewed).ttl, 0s);
  grant(2, 5s);
  clock_.passed += 5s;
  store_.revoke(2, [&](Answer<LeaseTerm> got) { revoked = std::move(got); });
  EXPECT_EQ(std::get<StoreError>(revoked).kind, StoreError::Kind::lease_gone);
}

TEST_F(MemoryStoreTest, RearmedLeasesLastTheirFullTimeAndTheExtra) {
  grant(1, 10s);
  grant(2, 5s);
  put("a", "v", 2);
  clock_.passed += 5s;  // its time has come, but a new leader does not know
  store_.rearm_leases(1s);
  EXPECT_EQ(store_.next_expiry(), in(6s));
  EXPECT_EQ(count(), 1);
  clock_.passed += 6s;
  EXPECT_EQ(count(), 0);
  EXPECT_EQ(store_.next_expiry(), in(5s));
}

TEST_F(MemoryStoreTest, LeasesWithoutAnIdOrEverlastingOnesAreRefused) {
  for (const auto& [lease, ttl] : {std::pair<LeaseId, std::chrono::seconds>{0, 5s},
                                   {-1, 5s},
                                   {1, MemoryStore::kMaxTtl + 1s}}) {
    Answer<LeaseTerm> answer;
    store_.grant(lease, ttl, [&](Answer<LeaseTerm> got) { answer = std::move(got); });
    EXPECT_EQ(std::get<StoreError>(answer).kind, StoreError::Kind::not_applied);
  }
  EXPECT_FALSE(store_.next_expiry());
}

TEST_F(MemoryStoreTest, HistoryReachesBackAsFarAsItIsLarge) {
  const Revision first = put("0");
  for (int i = 1; i < 8; ++i) put(std::to_string(i));
  Seen all, too_late, rest;
  const auto whole = store_.watch(keys_under(""), first, all.handler());
  EXPECT_EQ(all.steps.size(), 8U);
  put("8");
  const auto lost = store_.watch(keys_under(""), first, too_late.handler());
  EXPECT_EQ(too_late.lost, 1);
  const auto found = store_.watch(keys_under(""), first + 1, rest.handler());
  EXPECT_EQ(rest.steps.size(), 8U);
  EXPECT_EQ(all.lost, 0) << "a watch that is told everything needs no history";
  EXPECT_EQ(all.steps.size(), 9U);
}

TEST_F(MemoryStoreTest, ARevisionIsForgottenWholeOrNotAtAll) {
  std::vector<Op> six, four;
  for (int i = 0; i < 6; ++i) six.push_back(Put{std::to_string(i), "v"});
  for (int i = 0; i < 4; ++i) four.push_back(Put{std::to_string(i), "v"});
  store_.txn({{}, six, {}}, [](const auto&) {});
  const Revision first = store_.revision();
  store_.txn({{}, four, {}}, [](const auto&) {});
  Seen too_late, rest;
  const auto lost = store_.watch(keys_under(""), first, too_late.handler());
  EXPECT_EQ(too_late.lost, 1);
  const auto found = store_.watch(keys_under(""), first + 1, rest.handler());
  ASSERT_EQ(rest.steps.size(), 1U);
  EXPECT_EQ(rest.steps.front().events.size(), 4U);
}

TEST_F(MemoryStoreTest, ALargeRevisionPushesOutAsMuchAsItNeeds) {
  const Revision first = put("0");
  for (int i = 1; i < 8; ++i) put(std::to_string(i));
  store_.txn({{}, {Put{"a", "v"}, Put{"b", "v"}, Put{"c", "v"}}, {}}, [](const auto&) {});
  Seen too_late, rest;
  const auto lost = store_.watch(keys_under(""), first + 2, too_late.handler());
  EXPECT_EQ(too_late.lost, 1);
  const auto found = store_.watch(keys_under(""), first + 3, rest.handler());
  EXPECT_EQ(rest.steps.size(), 6U);
}

TEST_F(MemoryStoreTest, ARevisionLargerThanTheHistoryIsToldButNotKept) {
  Seen seen, too_late, in_time;
  const auto watch = store_.watch(keys_under(""), 0, seen.handler());
  std::vector<Op> nine;
  for (int i = 0; i < 9; ++i) nine.push_back(Put{std::to_string(i), "v"});
  store_.txn({{}, nine, {}}, [](const auto&) {});
  EXPECT_EQ(seen.steps.front().events.size(), 9U);
  const auto lost = store_.watch(keys_under(""), store_.revision(), too_late.handler());
  EXPECT_EQ(too_late.lost, 1);
  const auto next = store_.watch(keys_under(""), store_.revision() + 1, in_time.handler());
  put("a");
  EXPECT_EQ(in_time.told(""), Lines{"put a=v"});
}

TEST_F(MemoryStoreTest, CompactionForgetsTheRevisionItNamesToo) {
  const Revision first = put("a", "1");
  put("a", "2");
  store_.compact(first);
  Seen too_late, rest;
  const auto lost = store_.watch(keys_under(""), first, too_late.handler());
  EXPECT_EQ(too_late.lost, 1);
  const auto found = store_.watch(keys_under(""), first + 1, rest.handler());
  EXPECT_EQ(rest.told(""), Lines{"put a=2"});
}

TEST_F(MemoryStoreTest, CompactionOfTheFutureForgetsThePastOnly) {
  store_.compact(1'000);
  Seen seen;
  const auto watch = store_.watch(keys_under(""), store_.revision() + 1, seen.handler());
  put("a");
  EXPECT_EQ(seen.told(""), Lines{"put a=v"});
  EXPECT_EQ(seen.lost, 0);
}

}  // namespace
}  // namespace weir
