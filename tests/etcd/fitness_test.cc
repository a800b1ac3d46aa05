// Which members are used at all: looked at before each is.

#include <dirent.h>
#include <gtest/gtest.h>

#include "tests/etcd/etcd_loop.h"
#include "tests/etcd/fake_member.h"

namespace weir::test {
namespace {

using Kind = StoreError::Kind;

bool is_done(const Answer<TxnAnswer>& answer) { return std::holds_alternative<TxnAnswer>(answer); }

void expect_unused(const FakeStatus& status, std::string_view words) {
  SCOPED_TRACE(words);
  FakeMember member(status);
  EtcdLoop loop(options_for({member.endpoint()}));
  EXPECT_EQ(std::get<StoreError>(loop.put("a")).kind, Kind::not_applied);
  ASSERT_TRUE(loop.run_until([&] { return !loop.downs.empty(); }));
  EXPECT_EQ(member.transactions(), 0);
  ASSERT_FALSE(loop.warnings.empty());
  EXPECT_NE(loop.warnings.front().find(words), std::string::npos) << loop.warnings.front();
}

TEST(EtcdFitness, AMemberThatIsNotFitIsNotUsedAndTheReasonTold) {
  expect_unused({.version = "3.2.32"}, "older than 3.3");
  expect_unused({.version = "3.5.1"}, "may lose data");
  expect_unused({.version = "next"}, "cannot tell its version");
  expect_unused({.has_leader = false}, "knows no leader");
  expect_unused({.is_learner = true}, "is a learner");
}

TEST(EtcdFitness, AMemberWithoutKnownDefectsIsUsedSilently) {
  FakeMember member({.version = "3.6.9"});
  EtcdLoop loop(options_for({member.endpoint()}));
  EXPECT_TRUE(is_done(loop.put("a")));
  EXPECT_TRUE(loop.warnings.empty());
}

TEST(EtcdFitness, AmongSeveralOnlyTheFitOneIsUsed) {
  FakeMember old({.version = "3.2.0"}), lonely({.has_leader = false}), good({.version = "3.7.0"});
  for (int round = 0; round < 6; ++round) {  // each begins with one by chance
    EtcdLoop loop(options_for({old.endpoint(), lonely.endpoint(), good.endpoint()}));
    EXPECT_TRUE(is_done(loop.put("a"))) << "the wait for the right one is within its timeout";
    EXPECT_TRUE(loop.downs.empty());
  }
  EXPECT_EQ(good.transactions(), 6);
  EXPECT_EQ(old.transactions() + lonely.transactions(), 0);
}

TEST(EtcdFitness, AMemberThatGetsALeaderIsUsedThen) {
  FakeMember member({.has_leader = false});
  EtcdLoop loop(options_for({member.endpoint()}));
  EXPECT_FALSE(is_done(loop.put("a")));
  member.set({.has_leader = true});
  EXPECT_TRUE(loop.put_at_last("a", 10s));
}

TEST(EtcdFitness, ALowerRevisionIsTakenForAnotherHistoryOnce) {
  FakeMember member({});
  EtcdLoop loop(options_for({member.endpoint()}));
  member.set_revision(100);
  ASSERT_TRUE(is_done(loop.put("a")));
  member.set_revision(50);
  ASSERT_TRUE(is_done(loop.put("a")));
  EXPECT_EQ(loop.replaced, 1);
  ASSERT_TRUE(is_done(loop.put("a")));
  EXPECT_EQ(loop.replaced, 1);
  // A transaction without an op may be answered from the past.
  member.set_revision(40);
  ASSERT_TRUE(is_done(loop.txn({})));
  EXPECT_EQ(loop.replaced, 1);
}

std::size_t open_files() {
  std::size_t count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

TEST(EtcdFitness, NothingPilesUpWhileEtcdIsAway) {
  std::string endpoint;
  {
    const FakeMember gone({});
    endpoint = gone.endpoint();
  }
  EtcdLoop loop(options_for({endpoint}));
  loop.put("a");
  const std::size_t before = open_files();
  int asked = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    for (int j = 0; j < 10; ++j, ++asked) {
      loop.store().txn({{}, {Put{"a", "v"}}, {}}, [&](const auto&) { ++refused; });
    }
    loop.run_for(10ms);
  }
  EXPECT_TRUE(loop.run_until([&] { return refused == asked; }, 2s));
  EXPECT_LE(open_files(), before + 2) << "a connection attempt may be under way";
}

}  // namespace
}  // namespace weir::test
