// The store goes while calls are under way: nobody is called or posted to from then on.

#include <gtest/gtest.h>

#include <thread>

#include "tests/contract/store_contract.h"
#include "tests/etcd/etcd_loop.h"
#include "tests/support/etcd_cluster.h"

namespace weir::test {
namespace {

class EtcdLifetime : public testing::Test {
 protected:
  void ask_everything(EtcdStore& store) {
    for (int i = 0; i < 50; ++i) {
      store.txn({{}, {Put{"a", "v"}}, {}}, [this](const auto&) { ++answers_; });
      store.grant(1 + i, 60s, [this](const auto&) { ++answers_; });
      store.keep_alive(1 + i, [this](const auto&) { ++answers_; });
      watches_.push_back(store.watch(keys_under("a"), 0, seen_.handler()));
    }
  }

  static inline std::unique_ptr<EtcdCluster> cluster_;
  static void SetUpTestSuite() { cluster_ = std::make_unique<EtcdCluster>(); }
  static void TearDownTestSuite() { cluster_.reset(); }

  int answers_ = 0;
  Seen seen_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

TEST_F(EtcdLifetime, NothingIsAnsweredOrPostedAfterwards) {
  for (int round = 0; round < 20; ++round) {
    EtcdLoop loop(options_for(cluster_->endpoints()));
    ASSERT_TRUE(loop.put_at_last("a"));
    watches_.clear();
    ask_everything(loop.store());
    loop.run_for(std::chrono::milliseconds(round));  // some are answered by now, and some not
    loop.destroy_store();
    const int answers = answers_;
    const std::size_t steps = seen_.steps.size(), posted = loop.posted();
    loop.run_for(20ms);  // what was posted before does nothing
    EXPECT_EQ(answers_, answers);
    EXPECT_EQ(seen_.steps.size(), steps);
    EXPECT_EQ(seen_.lost, 0);
    EXPECT_LE(loop.posted(), posted);
  }
}

TEST_F(EtcdLifetime, CallsThatWaitForAMemberAreDroppedToo) {
  EtcdLoop loop(options_for(cluster_->endpoints()));
  ask_everything(loop.store());  // before anything is connected
  loop.destroy_store();
  loop.run_for(20ms);
  EXPECT_EQ(answers_, 0);
  EXPECT_EQ(seen_.lost, 0);
}

TEST_F(EtcdLifetime, TheLoopMayHaveStoppedBefore) {
  auto loop = std::make_unique<EtcdLoop>(options_for(cluster_->endpoints()));
  ASSERT_TRUE(loop->put_at_last("a"));
  ask_everything(loop->store());
  // Nobody runs what is posted from here on; another thread tears down.
  std::thread([&loop] { loop->destroy_store(); }).join();
  loop.reset();
  EXPECT_EQ(answers_, 0);
}

TEST_F(EtcdLifetime, AWatchMayOutliveTheStore) {
  EtcdLoop loop(options_for(cluster_->endpoints()));
  ASSERT_TRUE(loop.put_at_last("a"));
  auto watch = loop.store().watch(keys_under("a"), 1, seen_.handler());
  ASSERT_TRUE(loop.run_until([&] { return !seen_.steps.empty(); }));
  loop.destroy_store();
  watch.reset();
  EXPECT_EQ(seen_.lost, 0);
}

TEST_F(EtcdLifetime, WhatAHandlerOwnsIsReleasedWithTheWatch) {
  EtcdLoop loop(options_for(cluster_->endpoints()));
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> observer = owned;
  auto watch = loop.store().watch(keys_under("a"), 0, {[owned](Revision, const auto&) {}, [] {}});
  owned.reset();
  EXPECT_FALSE(observer.expired());
  watch.reset();
  EXPECT_TRUE(observer.expired());
}

// Both revisions come in one response.
TEST_F(EtcdLifetime, AHandlerThatDestroysItsWatchIsToldNothingMore) {
  EtcdLoop loop(options_for(cluster_->endpoints()));
  const Revision first = std::get<TxnAnswer>(loop.put("b", "1")).revision;
  ASSERT_TRUE(loop.put_at_last("b"));
  int told = 0;
  std::unique_ptr<Watch> watch;
  watch = loop.store().watch({"b", ""}, first,
                             {[&](Revision, const auto&) {
                                ++told;
                                watch.reset();
                              },
                              [] {}});
  const auto other = loop.store().watch({"b", ""}, first, seen_.handler());
  ASSERT_TRUE(loop.run_until([&] { return seen_.steps.size() == 2 && told > 0; }));
  EXPECT_EQ(told, 1);
}

// With a frozen server nothing comes back: cancelling must not need it.
TEST_F(EtcdLifetime, ItDoesNotWaitForTheServer) {
  EtcdOptions options = options_for(cluster_->endpoints());
  options.timeout = 60s;
  EtcdLoop loop(options);
  ASSERT_TRUE(loop.put_at_last("a"));
  cluster_->freeze(0);
  ask_everything(loop.store());
  const auto begun = std::chrono::steady_clock::now();
  loop.destroy_store();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
  cluster_->thaw(0);
}

}  // namespace
}  // namespace weir::test
