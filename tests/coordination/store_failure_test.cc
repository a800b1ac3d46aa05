// What happens to requests while the store is away, and when it is not the one it was.

#include <gtest/gtest.h>

#include "tests/coordination/virtual_world.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Requests = VirtualWorld::Requests;

int refused(const Requests& requests, Refusal why) {
  int count = 0;
  for (const auto& request : requests) count += request->refusal() == why ? 1 : 0;
  return count;
}

// So many at each replica.
std::vector<Requests> at_all(VirtualWorld& world, int replicas, int count) {
  std::vector<Requests> made;
  for (int i = 0; i < replicas; ++i) {
    made.push_back(world.requests(count, "/a", static_cast<std::size_t>(i)));
  }
  return made;
}

std::vector<int> started_at_each(const std::vector<Requests>& replicas) {
  std::vector<int> counts;
  for (const Requests& requests : replicas) counts.push_back(started(requests));
  return counts;
}

TEST(StoreAway, RejectsAfterTwiceTheTimeoutAndThenAtOnce) {
  VirtualWorld world("2026-11-18T12:00:10Z");
  world.limit(limit_of(10));
  const Requests before = world.requests(1, "/a");
  world.way().cut();
  const auto first = world.request("/a");
  world.pass(1'900ms);
  EXPECT_TRUE(first->waiting());
  world.pass(200ms);
  EXPECT_EQ(first->refusal(), Refusal::store_unavailable);
  EXPECT_FALSE(world.replica().stats().store_up);
  EXPECT_EQ(world.request("/a")->refusal(), Refusal::store_unavailable);
  EXPECT_EQ(world.request("/new")->refusal(), Refusal::store_unavailable);
  EXPECT_EQ(started(before), 1);
}

TEST(StoreAway, IsNoticedAgainWhenItAnswers) {
  VirtualWorld world("2026-11-18T12:00:10Z");
  world.limit(limit_of(10));
  world.way().cut();
  const auto first = world.request("/a");
  world.pass(10s);
  EXPECT_NEAR(world.replica().degraded().count(), 8, 0.1);
  world.way().mend();
  world.pass(1s);
  EXPECT_TRUE(world.replica().stats().store_up);
  EXPECT_TRUE(world.request("/a")->started());
  const double degraded = world.replica().degraded().count();
  world.pass(5s);
  EXPECT_EQ(world.replica().degraded().count(), degraded);
}

TEST(StoreAway, IsAskedByOneHoweverManyResourcesThereAre) {
  VirtualWorld world("2026-11-18T12:00:10Z");
  world.limit(limit_of(10));
  std::vector<std::unique_ptr<Request>> requests;
  for (int i = 0; i < 500; ++i) requests.push_back(world.request("/" + std::to_string(i)));
  world.way().cut();
  for (int i = 0; i < 500; ++i) requests.push_back(world.request("/" + std::to_string(i)));
  world.pass(5s);
  const int before = world.way().calls();
  world.pass(60s);
  EXPECT_LT(world.way().calls() - before, 60 * 11) << "probes and leases alone";
}

TEST(Share, BeginsWithTheNextWindowAndGivesEachItsPart) {
  VirtualWorld world("2026-11-18T12:00:10Z",
                     {.replicas = 3, .on_store_failure = OnStoreFailure::share});
  world.limit(limit_of(100));
  const auto before = at_all(world, 3, 40);
  world.pass(1s);
  ASSERT_EQ(started_at_each(before), (std::vector{34, 33, 33}));
  world.cut_all();
  const auto others = at_all(world, 3, 60);
  world.pass(20s);
  EXPECT_EQ(started_at_each(others), (std::vector{0, 0, 0})) << "the window is used up";
  world.pass_until("2026-11-18T12:01:10Z");
  // Those that had waited before come first.
  EXPECT_EQ(started_at_each(before), (std::vector{40, 40, 40}));
  EXPECT_EQ(started_at_each(others), (std::vector{28, 26, 26}));
  world.pass_until("2026-11-18T12:02:10Z");
  EXPECT_EQ(started_at_each(others), (std::vector{60, 59, 59}));
}

TEST(Share, LastsToTheEndOfTheWindowInWhichTheStoreCameBack) {
  VirtualWorld world("2026-11-18T12:00:10Z",
                     {.replicas = 2, .on_store_failure = OnStoreFailure::share});
  world.limit(limit_of(10));
  ASSERT_EQ(started(world.requests(1, "/a", 0)), 1);
  ASSERT_EQ(started(world.requests(1, "/a", 1)), 1);
  world.cut_all();
  const auto waiting = at_all(world, 2, 30);
  world.pass_until("2026-11-18T12:01:05Z");
  const int sent = 8 + 10;  // what was left of the first window is not known without the store
  EXPECT_LE(started_at_each(waiting)[0] + started_at_each(waiting)[1], sent);
  EXPECT_EQ(started_at_each(waiting), (std::vector{5, 5}));
  world.mend_all();
  world.pass(30s);
  EXPECT_EQ(started_at_each(waiting), (std::vector{5, 5})) << "5 and 5 are 10";
  world.pass_until("2026-11-18T12:02:05Z");
  EXPECT_EQ(started_at_each(waiting)[0] + started_at_each(waiting)[1], 20);
  EXPECT_EQ(world.keys("/weir/v1/claims/default:/a@2026-11-18T12:02:00Z/").size(), 10u);
}

TEST(Share, OfNobodyKnowsHowManyIsNothing) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.on_store_failure = OnStoreFailure::share});
  world.limit(limit_of(10));
  world.replica().set_replicas({});
  world.cut_all();
  const Requests requests = world.requests(3, "/a");
  world.pass(3s);
  EXPECT_EQ(refused(requests, Refusal::store_unavailable), 3);
}

TEST(Share, OfAFewUnitsAmongManyRejectsWhereNothingIsLeft) {
  VirtualWorld world("2026-11-18T12:00:10Z",
                     {.replicas = 3, .on_store_failure = OnStoreFailure::share});
  world.limit(limit_of(2));
  world.cut_all();
  const auto waiting = at_all(world, 3, 3);
  world.pass_until("2026-11-18T12:01:05Z");
  EXPECT_EQ(started_at_each(waiting), (std::vector{1, 1, 0}));
  EXPECT_EQ(refused(waiting[2], Refusal::store_unavailable), 3);
}

TEST(Share, OfSlidingBeginsAWindowLaterAndComesBackEachWindow) {
  VirtualWorld world("2026-11-18T12:00:10Z",
                     {.replicas = 2, .on_store_failure = OnStoreFailure::share});
  world.limit(limit_of(10, Mode::sliding, 10s));
  const auto before = at_all(world, 2, 5);
  ASSERT_EQ(started_at_each(before), (std::vector{5, 5}));
  world.cut_all();
  const auto waiting = at_all(world, 2, 20);
  world.pass(9s);
  EXPECT_EQ(started_at_each(waiting), (std::vector{0, 0}));
  world.pass(10s);
  EXPECT_EQ(started_at_each(waiting), (std::vector{5, 5}));
  world.pass(7s);
  world.mend_all();
  // Back again, and never more than 10 in 10 s.
  std::vector<WallTime> times;
  world.pass(60s);
  for (const Requests& requests : waiting) {
    for (const auto& request : requests) {
      ASSERT_TRUE(request->started());
      times.push_back(request->started_at());
    }
  }
  std::sort(times.begin(), times.end());
  for (std::size_t i = 10; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 10], 10s) << i;
}

TEST(Share, OfInFlightCountsWhatIsBeingServed) {
  VirtualWorld world("2026-11-18T12:00:10Z",
                     {.replicas = 2, .on_store_failure = OnStoreFailure::share});
  world.limit(limit_of(10, Mode::in_flight));
  Requests long_ones = world.requests(3, "/a", 0);
  ASSERT_EQ(started(long_ones), 3);
  world.cut_all();
  Requests waiting = world.requests(10, "/a", 0);
  world.pass(60s);
  EXPECT_EQ(started(waiting), 2) << "5 less the 3 that are still being served";
  long_ones.clear();
  world.pass(5s);
  EXPECT_EQ(started(waiting), 5);
  world.mend_all();
  world.pass(5s);
  EXPECT_EQ(started(waiting), 5)
      << "its share, while units are out that the store does not know of";
  for (auto& request : waiting) {
    if (request->started()) request->finish();
  }
  world.pass(5s);
  EXPECT_EQ(started(waiting), 10);
}

TEST(Allow, PassesEverythingWhileTheStoreIsAwayAndNothingMoreThanTheLimitAfter) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.on_store_failure = OnStoreFailure::allow});
  world.limit(limit_of(10));
  ASSERT_EQ(started(world.requests(12, "/a")), 10);
  world.cut_all();
  const Requests first = world.requests(5, "/b");
  world.pass(3s);
  EXPECT_EQ(started(first), 5);
  EXPECT_EQ(started(world.requests(500, "/a")), 500);
  EXPECT_EQ(started(world.requests(500, "/c")), 500);
  world.mend_all();
  world.pass(2s);
  EXPECT_EQ(started(world.requests(20, "/c")), 10);
  world.pass_until("2026-11-18T12:01:05Z");
  EXPECT_EQ(started(world.requests(20, "/d")), 10);
}

TEST(Replaced, NothingIsClaimedInAWindowThatTheChangeLiesIn) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.replicas = 2});
  world.limit(limit_of(10));
  const Requests before = world.requests(7, "/a", 0);
  world.pass(100ms);
  ASSERT_EQ(started(before), 7);
  world.replace_store();
  const auto used = at_all(world, 2, 5);
  const Requests other = world.requests(5, "/b", 1);
  world.pass_until("2026-11-18T12:00:59Z");
  EXPECT_EQ(started_at_each(used), (std::vector{0, 0}));
  EXPECT_EQ(started(other), 0) << "who knows who used it";
  world.pass_until("2026-11-18T12:01:01Z");
  EXPECT_EQ(started_at_each(used), (std::vector{5, 5}));
  EXPECT_EQ(started(other), 5);
}

TEST(Replaced, SlidingWaitsForAWindow) {
  VirtualWorld world("2026-11-18T12:00:10Z");
  world.limit(limit_of(10, Mode::sliding, 10s));
  ASSERT_EQ(started(world.requests(10, "/a")), 10);
  world.replace_store();
  const Requests waiting = world.requests(5, "/a");
  world.pass(9s);
  EXPECT_EQ(started(waiting), 0);
  world.pass(2s);
  EXPECT_EQ(started(waiting), 5);
}

TEST(Replaced, WhatWasInHandIsNotSpent) {
  VirtualWorld world("2026-11-18T12:00:10Z");
  world.limit(limit_of(1000));
  // Steady use, so that units are claimed ahead.
  for (int i = 0; i < 100; ++i) {
    world.request("/a");
    world.pass(20ms);
  }
  ASSERT_GT(
      world.replica().view(*world.replica().find(world.replica().policy("default"), "/a")).in_hand,
      0);
  world.replace_store();
  EXPECT_FALSE(world.request("/a")->started());
}

}  // namespace
}  // namespace weir
