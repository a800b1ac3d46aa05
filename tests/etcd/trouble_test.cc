// What befalls a cluster: members that stop, freeze and come back, no space, compaction, and a
// cluster that is not the one it was.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/contract/store_contract.h"
#include "tests/etcd/etcd_loop.h"
#include "tests/support/etcd_cluster.h"

namespace weir::test {
namespace {

using Kind = StoreError::Kind;

// One that stands still must be left within a few seconds.
constexpr Span kSoon = 10s;

bool is_done(const Answer<TxnAnswer>& answer) { return std::holds_alternative<TxnAnswer>(answer); }

Revision revision_of(const Answer<TxnAnswer>& answer) {
  return std::get<TxnAnswer>(answer).revision;
}

std::string value_of(EtcdCluster& cluster, const std::string& key) {
  return cluster.etcdctl({"get", "--print-value-only", key});
}

TEST(EtcdMembers, TheFirstCallWaitsForTheConnection) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  EXPECT_TRUE(is_done(loop.put("a", "1")));
  EXPECT_EQ(loop.ups, 1);
  EXPECT_EQ(value_of(cluster, "a"), "1\n");
  ASSERT_EQ(loop.warnings.size(), 1U) << "the version's defects, once";
  EXPECT_NE(loop.warnings.front().find("3.4."), std::string::npos);
}

TEST(EtcdMembers, WithoutEtcdCallsAreRefusedAndWatchesLostUntilItComes) {
  EtcdCluster cluster({}, EtcdCluster::Begin::not_started);
  EtcdLoop loop(options_for(cluster.endpoints()));
  const auto refused = loop.put("a");
  ASSERT_FALSE(is_done(refused));
  EXPECT_EQ(std::get<StoreError>(refused).kind, Kind::not_applied);
  Seen seen;
  const auto watch = loop.store().watch(keys_under("a"), 0, seen.handler());
  EXPECT_TRUE(loop.run_until([&] { return seen.lost == 1; }));
  EXPECT_EQ(loop.ups, 0);
  EXPECT_EQ(loop.downs.size(), 1U);

  cluster.start();
  EXPECT_TRUE(loop.put_at_last("a", kSoon));
  EXPECT_EQ(loop.ups, 1);
}

TEST(EtcdMembers, ARefusedCallIsAnsweredAtOnce) {
  EtcdCluster cluster({}, EtcdCluster::Begin::not_started);
  EtcdLoop loop(options_for(cluster.endpoints()));
  loop.put("a");
  // The member rests now; nothing waits for it, however many ask.
  int refused = 0;
  for (int i = 0; i < 1'000; ++i) {
    loop.store().txn({{}, {Put{"a", "v"}}, {}}, [&](const Answer<TxnAnswer>& answer) {
      refused += std::get<StoreError>(answer).kind == Kind::not_applied ? 1 : 0;
    });
  }
  EXPECT_TRUE(loop.run_until([&] { return refused == 1'000; }));
}

TEST(EtcdMembers, AnEtcdThatIsStartedAnewIsFoundAndWatchesAreLostMeanwhile) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  const Revision first = revision_of(loop.put("a", "1"));
  Seen seen;
  const auto watch = loop.store().watch(keys_under("a"), first, seen.handler());
  ASSERT_TRUE(loop.run_until([&] { return !seen.steps.empty(); }));

  cluster.kill(0);
  EXPECT_TRUE(loop.run_until([&] { return seen.lost == 1; }, kSoon));
  EXPECT_TRUE(loop.run_until([&] { return loop.downs.size() == 1; }, kSoon));
  cluster.start(0);
  EXPECT_TRUE(loop.put_at_last("b", kSoon));
  EXPECT_EQ(loop.ups, 2);
  EXPECT_EQ(loop.replaced, 0) << "it is the same cluster";
  EXPECT_EQ(seen.lost, 1);
}

TEST(EtcdMembers, WhatAKilledMemberDidNotAnswerIsUnknown) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  ASSERT_TRUE(is_done(loop.put("a")));
  cluster.freeze(0);
  std::optional<Answer<TxnAnswer>> answer;
  loop.store().txn({{}, {Put{"a", "2"}}, {}}, [&](Answer<TxnAnswer> got) { answer = got; });
  cluster.kill(0);
  ASSERT_TRUE(loop.run_until([&] { return answer.has_value(); }));
  EXPECT_EQ(std::get<StoreError>(*answer).kind, Kind::unknown);
}

TEST(EtcdMembers, EveryCallEndsWithItsTimeout) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  ASSERT_TRUE(is_done(loop.put("a")));
  cluster.freeze(0);
  int unknown = 0;
  const auto note = [&](const auto& answer) {
    unknown += std::get<StoreError>(answer).kind == Kind::unknown ? 1 : 0;
  };
  Seen seen;
  loop.store().txn({{}, {Put{"a", "2"}}, {}}, note);
  loop.store().grant(7, 60s, note);
  loop.store().keep_alive(7, note);
  loop.store().revoke(7, note);
  const auto watch = loop.store().watch(keys_under("a"), 0, seen.handler());
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(loop.run_until([&] { return unknown == 4 && seen.lost == 1; }));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
  cluster.thaw(0);
  EXPECT_TRUE(loop.put_at_last("a", kSoon));
}

TEST(EtcdMembers, AWatchThatIsNotBegunInTimeIsLost) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  ASSERT_TRUE(is_done(loop.put("a")));
  cluster.freeze(0);
  Seen seen;
  const auto watch = loop.store().watch(keys_under("a"), 0, seen.handler());
  EXPECT_TRUE(loop.run_until([&] { return seen.lost == 1; }, 5s)) << "sooner than by a ping";
  cluster.thaw(0);
}

TEST(EtcdMembers, ASilentMemberIsNoticedByAWatchAlone) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  Seen seen;
  const Revision first = revision_of(loop.put("a"));
  const auto watch = loop.store().watch(keys_under("a"), first, seen.handler());
  ASSERT_TRUE(loop.run_until([&] { return !seen.steps.empty(); }));
  cluster.freeze(0);
  EXPECT_TRUE(loop.run_until([&] { return seen.lost == 1; }, 20s));
  cluster.thaw(0);
  EXPECT_TRUE(loop.put_at_last("a", kSoon));
}

// A quiet watch is kept for longer than it takes to ping twice: etcd hangs up on whoever pings too
// often.
TEST(EtcdMembers, AQuietWatchIsNotLost) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  Seen seen;
  const Revision first = revision_of(loop.put("a"));
  const auto watch = loop.store().watch(keys_under("a"), first, seen.handler());
  loop.run_for(24s);
  EXPECT_EQ(seen.lost, 0);
  loop.put("a");
  EXPECT_TRUE(loop.run_until([&] { return seen.steps.size() == 2; }));
}

class EtcdThreeMembers : public testing::Test {
 protected:
  // Begins with that member.
  EtcdOptions beginning_with(std::size_t member) {
    std::vector<std::string> endpoints{cluster_.endpoint(member)};
    return options_for(endpoints);
  }

  EtcdCluster cluster_{{.members = 3}};
};

TEST_F(EtcdThreeMembers, TheStoreGoesOnThroughAnotherMember) {
  EtcdLoop loop(options_for(cluster_.endpoints()));
  ASSERT_TRUE(loop.put_at_last("a"));
  Seen seen;
  const auto watch = loop.store().watch(keys_under("a"), 0, seen.handler());
  for (std::size_t member = 0; member < 3; ++member) {
    SCOPED_TRACE("killed " + std::to_string(member));
    cluster_.kill(member);
    EXPECT_TRUE(loop.put_at_last("b", kSoon));
    cluster_.start(member);
    cluster_.wait_until_healthy();
  }
  EXPECT_TRUE(loop.run_until([&] { return seen.lost == 1; })) << "with the member that it was on";
  EXPECT_EQ(loop.replaced, 0);
}

TEST_F(EtcdThreeMembers, AFrozenMemberIsLeft) {
  EtcdLoop loop(options_for(cluster_.endpoints()));
  ASSERT_TRUE(loop.put_at_last("a"));
  for (std::size_t member = 0; member < 3; ++member) {
    SCOPED_TRACE("frozen " + std::to_string(member));
    cluster_.freeze(member);
    EXPECT_TRUE(loop.put_at_last("b", 8s)) << "sooner than by a ping that is not answered";
    cluster_.thaw(member);
    cluster_.wait_until_healthy();
  }
  EXPECT_EQ(loop.replaced, 0);
}

TEST_F(EtcdThreeMembers, AMemberWithoutALeaderIsNotUsed) {
  const std::size_t alone = cluster_.leader();
  EtcdLoop loop(options_for(cluster_.endpoints()));
  ASSERT_TRUE(loop.put_at_last("a"));
  for (std::size_t member = 0; member < 3; ++member) {
    if (member != alone) cluster_.kill(member);
  }
  const auto said = [&](std::string_view words) {
    return std::ranges::any_of(loop.warnings, [&](const std::string& warning) {
      return warning.find(words) != std::string::npos;
    });
  };
  EXPECT_TRUE(loop.put_until([&] { return said("no leader") && !loop.downs.empty(); }))
      << testing::PrintToString(loop.warnings);
  const auto answer = loop.put("a");
  EXPECT_EQ(std::get<StoreError>(answer).kind, Kind::not_applied) << "it is not even asked";
  for (std::size_t member = 0; member < 3; ++member) {
    if (member != alone) cluster_.start(member);
  }
  EXPECT_TRUE(loop.put_at_last("a"));
}

TEST_F(EtcdThreeMembers, ALeaseIsKeptAliveThroughAnyMember) {
  for (std::size_t member = 0; member < 3; ++member) {
    EtcdLoop loop(beginning_with(member));
    const LeaseId lease = 100 + static_cast<LeaseId>(member);
    ASSERT_TRUE(std::holds_alternative<LeaseTerm>(loop.grant(lease, 60s)));
    EXPECT_EQ(std::get<LeaseTerm>(loop.keep_alive(lease)).ttl, 60s);
    EXPECT_EQ(std::get<LeaseTerm>(loop.keep_alive(999)).ttl, 0s);
  }
}

TEST(EtcdTrouble, AClusterMadeAnewIsNoticedBeforeItsFirstAnswer) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(is_done(loop.put("a")));
  cluster.kill(0);
  cluster.wipe(0);
  cluster.start(0);
  cluster.wait_until_healthy();

  std::vector<int> replaced_when_answered;
  const auto note = [&](const Answer<TxnAnswer>& answer) {
    if (is_done(answer)) replaced_when_answered.push_back(loop.replaced);
  };
  ASSERT_TRUE(loop.put_until([&] { return !replaced_when_answered.empty(); }, note));
  EXPECT_EQ(replaced_when_answered.front(), 1);
  loop.put("a");
  EXPECT_EQ(loop.replaced, 1) << "once";
}

TEST(EtcdTrouble, AnotherClusterInItsPlaceIsNoticedByItsId) {
  EtcdCluster first, second;
  EtcdLoop loop(options_for({first.endpoint(0), second.endpoint(0)}));
  ASSERT_TRUE(loop.put_at_last("a"));
  EXPECT_EQ(loop.replaced, 0);
  Seen seen;
  const auto watch = loop.store().watch(keys_under("a"), 0, seen.handler());
  // Whichever is used: the other one is of another cluster.
  for (int i = 0; i < 20; ++i) second.etcdctl({"put", "b", "v"});
  const bool on_first = first.etcdctl({"get", "a"}).find('a') != std::string::npos;
  (on_first ? first : second).kill(0);
  ASSERT_TRUE(loop.put_at_last("a", kSoon));
  EXPECT_EQ(loop.replaced, 1);
  EXPECT_EQ(seen.lost, 1);
}

TEST(EtcdTrouble, AWatchThatFellBehindACompactionIsLost) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  const Revision first = revision_of(loop.put("a"));
  Revision last = first;
  for (int i = 0; i < 10; ++i) last = revision_of(loop.put("a"));
  cluster.etcdctl({"compact", std::to_string(last)});
  Seen seen;
  const auto watch = loop.store().watch(keys_under("a"), first, seen.handler());
  EXPECT_TRUE(loop.run_until([&] { return seen.lost == 1; }));
  EXPECT_TRUE(seen.steps.empty());
  EXPECT_TRUE(is_done(loop.put("a"))) << "the member is as good as before";
  EXPECT_EQ(seen.lost, 1);
}

// The transaction that fills the store is applied and answered with an error.
TEST(EtcdTrouble, NoSpaceIsUnknown) {
  EtcdCluster cluster({.flags = {"--quota-backend-bytes=100000"}});
  EtcdLoop loop(options_for(cluster.endpoints()));
  std::optional<StoreError> error;
  for (int i = 0; i < 1'000 && !error; ++i) {
    const auto answer = loop.put("a", std::string(10'000, 'x'));
    if (const auto* refused = std::get_if<StoreError>(&answer)) error = *refused;
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, Kind::unknown);
  EXPECT_NE(error->detail.find("space"), std::string::npos) << error->detail;
  EXPECT_TRUE(is_done(loop.txn({{}, {Read{{"a", ""}}}, {}}))) << "what there is can be read";
}

TEST(EtcdTrouble, ATransactionThatIsTooLargeIsNotApplied) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  const auto answer = loop.put("a", std::string(1'600'000, 'x'));
  EXPECT_EQ(std::get<StoreError>(answer).kind, Kind::not_applied);
}

TEST(EtcdTrouble, AnAnswerMayBeLarge) {
  EtcdCluster cluster;
  EtcdLoop loop(options_for(cluster.endpoints()));
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(is_done(loop.put("a" + std::to_string(i), std::string(1'000'000, 'x'))));
  }
  const auto answer = loop.txn({{}, {Read{keys_under("a")}}, {}});
  ASSERT_TRUE(is_done(answer));
  EXPECT_EQ(std::get<ReadAnswer>(std::get<TxnAnswer>(answer).answers.front()).keys.size(), 8U);
}

}  // namespace
}  // namespace weir::test
