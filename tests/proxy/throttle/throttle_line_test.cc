#include "proxy/throttle/throttle_line.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <thread>

#include "proxy/throttle/upstream_throttle.h"
#include "tests/proxy/throttle/scenario.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

// A throttle whose rate stays, the line before it, and who was let go, in order.
class Waiting : public testing::Test {
 protected:
  struct One : ThrottleLine::Visitor {
    Waiting* test;
    bool woken = false;
  };

  void use(double rate, int buckets) {
    FairThrottleOptions options;
    options.rate = {.initial = rate, .floor = rate, .ceiling = rate, .increase = 0};
    options.buckets = buckets;
    options.burst = 1ms;
    throttle_.emplace(options, random_, at(0));
    line_.emplace(*throttle_);
  }
  // Takes the two tokens that each bucket begins with.
  void empty(const std::string& tenant) {
    for (int i = 0; i < 2; ++i) {
      auto ticket = line_->accept(tenant, at(0));
      ASSERT_TRUE(ticket);
      ticket.settle(Load::unknown, at(0));
    }
  }
  One& join(const std::string& tenant, double now) {
    One& one = visitors_.emplace_back();
    one.test = this;
    one.tenant = *names_.insert(tenant).first;
    one.who = &one;
    one.wake = [](void* who) {
      auto& woken = *static_cast<One*>(who);
      EXPECT_FALSE(std::exchange(woken.woken, true)) << "once";
      woken.test->gone_.push_back(std::string{woken.tenant});
      if (woken.ticket) woken.ticket.settle(Load::unknown, at(0));
    };
    EXPECT_TRUE(line_->join(one, at(now)));
    return one;
  }
  // Serves whenever it is due.
  void serve_until(double end) {
    for (SteadyTime due = line_->serve(at(0)); due <= at(end); due = line_->serve(due)) {
    }
  }
  std::string gone() const {
    std::string names;
    for (const std::string& name : gone_) names += name;
    return names;
  }

  SeededRandom random_{1};
  std::optional<FairThrottle> throttle_;
  std::optional<ThrottleLine> line_;
  std::set<std::string> names_;
  std::deque<One> visitors_;
  std::vector<std::string> gone_;
};

TEST_F(Waiting, GoesOneAfterAnotherFromEachTenantOfABucketAsTokensCome) {
  use(10, 1);
  empty("x");
  for (const char* tenant : {"a", "a", "a", "a", "b", "b", "c"}) join(tenant, 0);
  serve_until(0.05);
  EXPECT_EQ(gone(), "") << "there is no token yet";
  serve_until(0.101);
  EXPECT_EQ(gone(), "a");
  serve_until(0.701);
  EXPECT_EQ(gone(), "abcabaa");
  EXPECT_EQ(line_->waiting(), 0u);
}

TEST_F(Waiting, ATenantThatIsNewToTheLineHasItsTurnWithinOneRound) {
  use(10, 1);
  empty("x");
  for (int i = 0; i < 50; ++i) join("a", 0);
  serve_until(0.201);
  join("b", 0.201);
  serve_until(0.401);
  EXPECT_EQ(gone(), "aaab");
}

TEST_F(Waiting, NobodyWaitsForAnotherTenantsBucket) {
  use(10, 1'000);
  empty("a");
  for (int i = 0; i < 3; ++i) join("a", 0);
  join("b", 0);
  join("b", 0);
  serve_until(0.05);
  EXPECT_EQ(gone(), "bb");
  serve_until(0.301);
  EXPECT_EQ(gone(), "bbaaa");
}

TEST_F(Waiting, WhoeverComesWhileOthersWaitForTheSameBucketDoesNotPassThem) {
  use(10, 1);
  empty("x");
  for (const char* tenant : {"a", "b"}) join(tenant, 0);
  EXPECT_FALSE(line_->accept("c", at(0.05)));
  EXPECT_EQ(gone(), "");
  // Their tokens are theirs, though nobody has served the line yet.
  EXPECT_FALSE(line_->accept("c", at(0.101)));
  EXPECT_EQ(gone(), "a");
  EXPECT_FALSE(line_->accept("c", at(0.202)));
  EXPECT_EQ(gone(), "ab");
  EXPECT_TRUE(line_->accept("c", at(0.303)));
}

TEST_F(Waiting, WhoeverComesWhileOthersWaitForAnotherBucketGoes) {
  use(10, 1'000);
  empty("a");
  join("a", 0);
  EXPECT_TRUE(line_->accept("b", at(0.02)));
  EXPECT_TRUE(line_->accept("b", at(0.03)));
  EXPECT_FALSE(line_->accept("b", at(0.04))) << "its own is empty now";
  EXPECT_FALSE(line_->accept("a", at(0.05)));
  serve_until(0.101);
  EXPECT_EQ(gone(), "a");
}

TEST_F(Waiting, AmongManyWhoWaitEveryBucketsTokensAreTheirs) {
  use(10, 17);
  for (int i = 0; i < 500; ++i) join("tenant" + std::to_string(i), 0);
  int passed = 0;
  for (double now = 0; now < 2; now += 0.0001) passed += bool{line_->accept("new", at(now))};
  EXPECT_EQ(passed, 0);
  EXPECT_GT(gone_.size(), 17u * 20);
}

TEST_F(Waiting, WhoeverIsDeniedBehindOthersIsToldWhenTheNextTokenComes) {
  use(0.1, 1);
  empty("x");
  join("a", 0);
  serve_until(0.01);
  for (const char* tenant : {"a", "b"}) {
    const auto denial = line_->accept(tenant, at(4));
    ASSERT_FALSE(denial);
    EXPECT_NEAR(std::chrono::duration<double>(denial.retry_in()).count(), 6, 0.01) << tenant;
  }
}

TEST_F(Waiting, WhoeverLeavesIsNeitherLetGoNorCalled) {
  use(10, 1);
  empty("x");
  One& first = join("a", 0);
  join("b", 0);
  EXPECT_TRUE(line_->leave(first));
  EXPECT_FALSE(line_->leave(first));
  serve_until(0.201);
  EXPECT_EQ(gone(), "b");
  EXPECT_EQ(line_->serve(at(10)), SteadyTime::max()) << "nobody waits";
}

TEST_F(Waiting, ADrainSendsAwayAllWhoWaitAndAllWhoCome) {
  use(10, 1);
  empty("x");
  One& first = join("a", 0);
  line_->drain();
  EXPECT_TRUE(first.woken);
  EXPECT_FALSE(first.ticket);
  One late;
  late.tenant = "b";
  EXPECT_FALSE(line_->join(late, at(0)));
}

TEST_F(Waiting, AsManyTenantsAsMayCostNoMoreThanAFewLooksEachTimeAndAllHaveTheirTurn) {
  use(100, 17);
  for (int i = 0; i < 2'000; ++i) join("tenant" + std::to_string(i), 0);
  serve_until(4);
  EXPECT_EQ(line_->waiting(), 0u) << "34 at once, and 1700 a second";
  EXPECT_EQ(std::set<std::string>(gone_.begin(), gone_.end()).size(), 2'000u);
}

// Workers that come, wait and leave, and serve the line meanwhile: each is let go or leaves, once.
TEST(WaitingThreads, NobodyIsLetGoTwiceAndNobodyIsLost) {
  SeededRandom random(1);
  FairThrottleOptions options;
  options.rate = {.initial = 1e6, .floor = 1, .ceiling = 1e6, .increase = 0};
  FairThrottle throttle(options, random, at(0));
  ThrottleLine line(throttle);
  std::atomic<int> woken{0}, left{0};
  std::atomic<std::int64_t> clock{0};
  std::vector<std::thread> threads;
  constexpr int kEach = 500;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      const std::string tenant = std::to_string(thread % 3);
      struct One : ThrottleLine::Visitor {
        std::atomic<int> calls{0};
      };
      for (int i = 0; i < kEach; ++i) {
        One one;
        one.tenant = tenant;
        one.who = &one;
        one.wake = [](void* who) { ++static_cast<One*>(who)->calls; };
        const auto now = [&] { return at(1e-6 * static_cast<double>(++clock)); };
        ASSERT_TRUE(line.join(one, now()));
        if (i % 3 == 0 && line.leave(one)) {
          ++left;
          continue;
        }
        while (one.calls == 0) {
          line.serve(now() + 1ms);
          std::this_thread::yield();
        }
        EXPECT_EQ(one.calls, 1);
        one.ticket.settle(Load::borne, now());
        ++woken;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(woken + left, 8 * kEach);
  EXPECT_EQ(line.waiting(), 0u);
  EXPECT_EQ(throttle.facts(at(0)).dropped, 0u);
}

TEST(UpstreamThrottle, StaysWhileItsOptionsDoAndGoesOnFromWhatAnotherOfItsKindHasLearned) {
  SeededRandom random(1);
  ThrottleOptions options;
  EXPECT_EQ(UpstreamThrottle::make(options, nullptr, random, at(0)), nullptr);
  options.kind = ThrottleOptions::Kind::sfq;
  const auto first = UpstreamThrottle::make(options, nullptr, random, at(0));
  first->throttle().accept("a", at(0)).settle(Load::too_much, at(0));
  EXPECT_EQ(UpstreamThrottle::make(options, first, random, at(1)), first);
  options.floor = 80;
  const auto second = UpstreamThrottle::make(options, first, random, at(1));
  EXPECT_EQ(second->throttle().facts(at(1)).rate, 80) << "70, within the new bounds";
  options.kind = ThrottleOptions::Kind::sfb;
  const auto third = UpstreamThrottle::make(options, second, random, at(1));
  EXPECT_EQ(third->throttle().facts(at(1)).rate, 100) << "which counts something else";
}

}  // namespace
}  // namespace weir::test
