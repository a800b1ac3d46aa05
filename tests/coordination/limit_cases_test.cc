// The cases that the limit is specified by, and what each mode promises, in virtual
// time.

#include <gtest/gtest.h>

#include "tests/coordination/virtual_world.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Requests = VirtualWorld::Requests;

// What a replica that claims its units and one that is the only one to count them have in common.
class OneProcess : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Counts, OneProcess, testing::Bool(), [](const auto& is_sole) {
  return is_sole.param ? "ByItself" : "InTheStore";
});

TEST_P(OneProcess, R1_AfterTheLimitTheNextWaitsForTheBoundaryAndTwoMorePassAtOnce) {
  VirtualWorld world("2026-11-18T12:00:30Z", {.sole = GetParam()});
  world.limit(limit_of(3));
  const Requests first = world.requests(3, "/a");
  EXPECT_EQ(started(first), 3);
  const auto fourth = world.request("/a");
  EXPECT_FALSE(fourth->started());
  world.pass(29'999ms);
  EXPECT_FALSE(fourth->started());
  world.pass(1ms);
  ASSERT_TRUE(fourth->started());
  EXPECT_EQ(utc_text_ms(fourth->started_at()), "2026-11-18T12:01:00.000Z");
  EXPECT_EQ(started(world.requests(3, "/a")), 2);
}

TEST_P(OneProcess, R2_ThreePathsGetTenEachPerWindowInTheOrderOfArrival) {
  VirtualWorld world("2026-11-18T12:00:00Z", {.sole = GetParam()});
  world.limit(limit_of(10));
  std::vector<Requests> paths;
  for (const char* path : {"/a", "/b", "/c"}) paths.push_back(world.requests(100, path));
  for (int window = 1; window <= 10; ++window) {
    for (const Requests& path : paths) {
      ASSERT_EQ(started(path), window * 10);
      std::uint64_t last = 0;
      for (const auto& request : path) {
        if (!request->started()) break;
        EXPECT_GT(request->order(), last);
        last = request->order();
      }
    }
    world.pass(60s);
  }
}

TEST_P(OneProcess, R3_BothSidesOfABoundaryHaveTheirOwnUnits) {
  VirtualWorld world("2026-11-18T11:59:59Z", {.sole = GetParam()});
  world.limit(limit_of(100));
  world.pass(900ms);
  const Requests before = world.requests(100, "/a");
  EXPECT_EQ(started(before), 100);
  world.pass(200ms);
  const Requests after = world.requests(100, "/a");
  EXPECT_EQ(started(after), 100);
}

TEST_P(OneProcess, R4_AUsedUpWindowStaysUsedUp) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.sole = GetParam()});
  world.limit(limit_of(100));
  EXPECT_EQ(started(world.requests(100, "/a")), 100);
  world.pass(10s);
  const auto late = world.request("/a");
  world.pass(39'999ms);
  EXPECT_FALSE(late->started());
  world.pass(1ms);
  EXPECT_TRUE(late->started());
}

TEST_P(OneProcess, R5_FinishingFreesNothingWhereStartsAreCounted) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.sole = GetParam()});
  world.limit(limit_of(1));
  const auto first = world.request("/a");
  const auto second = world.request("/a");
  first->finish();
  world.settle();
  EXPECT_FALSE(second->started());
}

TEST_P(OneProcess, R5_FinishingFreesAUnitInFlight) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.sole = GetParam()});
  world.limit(limit_of(2, Mode::in_flight));
  const Requests requests = world.requests(3, "/a");
  EXPECT_EQ(started(requests), 2);
  world.pass(10min);
  EXPECT_EQ(started(requests), 2);
  requests[0]->finish();
  world.settle();
  EXPECT_EQ(started(requests), 3);
}

TEST_P(OneProcess, R5_UntilDoneFreesBeforeTheBoundaryAndALateFinishFreesNothing) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.sole = GetParam()});
  world.limit(limit_of(2, Mode::until_done));
  Requests requests = world.requests(3, "/a");
  EXPECT_EQ(started(requests), 2);
  requests[0]->finish();
  world.settle();
  EXPECT_EQ(started(requests), 3);
  world.pass_until("2026-11-18T12:01:00Z");
  const Requests next = world.requests(3, "/a");
  EXPECT_EQ(started(next), 2);
  requests[1]->finish();
  requests[2]->finish();
  world.settle();
  EXPECT_EQ(started(next), 2) << "a unit of the last window came back into this one";
}

TEST_P(OneProcess, R6_TwoHundredAndFiftyTakeThreeWindows) {
  VirtualWorld world("2026-11-18T12:00:30Z", {.sole = GetParam()});
  world.limit(limit_of(100));
  const Requests requests = world.requests(250, "/a");
  world.pass(3min);
  for (int i = 0; i < 250; ++i) {
    ASSERT_TRUE(requests[i]->started());
    EXPECT_EQ(utc_text(requests[i]->started_at()), i < 100   ? "2026-11-18T12:00:30Z"
                                                   : i < 200 ? "2026-11-18T12:01:00Z"
                                                             : "2026-11-18T12:02:00Z");
  }
}

TEST_P(OneProcess, R8_WhoLeavesTheLineTakesNothingWithThem) {
  VirtualWorld world("2026-11-18T12:00:30Z", {.sole = GetParam()});
  world.limit(limit_of(40));
  const Requests used = world.requests(40, "/a");
  const Requests waiting = world.requests(50, "/a");
  for (int i = 0; i < 50; i += 5) waiting[i]->leave();
  world.pass(30s);
  EXPECT_EQ(started(waiting), 40);
}

TEST_P(OneProcess, R9_SecondsToTheBoundaryAreRoundedUp) {
  const auto left = [](std::chrono::milliseconds into) {
    const WallTime now = *parse_utc("2026-11-18T12:00:00Z") + into;
    return seconds_until(window_at(now, 60s).end(), now);
  };
  EXPECT_EQ(left(0ms), 60s);
  EXPECT_EQ(left(59'999ms), 1s);
  EXPECT_EQ(left(30'400ms), 30s);
}

TEST(R10, TwoReplicasGrantExactlyTheLimitBetweenThem) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.replicas = 2});
  world.limit(limit_of(100));
  Requests requests;
  for (int i = 0; i < 100; ++i) {
    requests.push_back(world.ask("/a", 0));
    requests.push_back(world.ask("/a", 1));
  }
  world.pass(5s);
  EXPECT_EQ(started(requests), 100);
  EXPECT_EQ(world.keys("/weir/v1/claims/default:/a@2026-11-18T12:00:00Z/").size(), 100u);
  world.pass_until("2026-11-18T12:01:05Z");
  EXPECT_EQ(started(requests), 200);
}

TEST_P(OneProcess, R11_PrefixesOfOneAnotherAreResourcesOfTheirOwn) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.sole = GetParam()});
  world.limit(limit_of(1));
  for (const char* path : {"/foo", "/foobar", "/foo/bar", "/foo@bar", "/foo/2019-05-03T10:00:00"}) {
    EXPECT_TRUE(world.request(path)->started()) << path;
    EXPECT_FALSE(world.request(path)->started()) << path;
  }
}

TEST(R12, AThousandConflictsLeaveNoLeaseBehind) {
  VirtualWorld world("2026-11-18T12:00:00Z", {.replicas = 3});
  world.limit(limit_of(1000));
  Requests requests;
  for (int i = 0; i < 1000; ++i) requests.push_back(world.ask("/a", i % 3));
  world.pass(10s);
  EXPECT_EQ(started(requests), 1000);
  EXPECT_LE(world.store.leases(), 3u);
  world.pass(5min);
  EXPECT_EQ(world.store.leases(), 0u);
  EXPECT_TRUE(world.keys().empty());
}

TEST_P(OneProcess, R14_AnActivePathKeepsItsCountHoweverManyOthersAreAskedFor) {
  VirtualWorld world("2026-11-18T12:00:00Z", {.max_resources = 100, .sole = GetParam()});
  Limit limit = limit_of(2);
  world.replica().configure({{"default", limit}}, 100, 1000);
  EXPECT_EQ(started(world.requests(2, "/active")), 2);
  Requests others;
  for (int i = 0; i < 1000; ++i) others.push_back(world.request("/other/" + std::to_string(i)));
  EXPECT_EQ(started(others), 99 + 2) << "a unit for each name, then those of the overflow";
  EXPECT_LE(world.replica().resources().size(), 101u);
  EXPECT_GT(world.replica().resources().overflows(), 0u);
  EXPECT_FALSE(world.request("/active")->started());
  others.clear();
  world.pass(2min);
  EXPECT_TRUE(world.request("/new")->started()) << "idle names make room";
}

TEST_P(OneProcess, WhatIsUsedOftenStaysWhileOthersAreForgotten) {
  VirtualWorld world("2026-11-18T12:00:00Z", {.max_resources = 10, .sole = GetParam()});
  world.replica().configure({{"default", limit_of(2)}}, 10, 1000);
  ASSERT_TRUE(world.request("/often")->started());
  Policy& policy = world.replica().policy("default");
  const std::weak_ptr<Resource> often = world.replica().resources().peek(policy, "/often");
  for (int minute = 1; minute <= 20; ++minute) {
    world.pass(1min);
    for (int i = 0; i < 3; ++i) {
      const std::string once = "/once/" + std::to_string(minute * 3 + i);
      EXPECT_TRUE(world.request(once)->started()) << once;
    }
    EXPECT_TRUE(world.request("/often")->started());
  }
  EXPECT_EQ(world.replica().resources().peek(policy, "/often"), often.lock());
  EXPECT_NE(often.lock(), nullptr);
  EXPECT_LE(world.replica().resources().size(), 10u);
  EXPECT_EQ(world.replica().resources().overflows(), 0u);
}

TEST_P(OneProcess, R15_AClockSetBackGrantsNothingOfAUsedUpWindow) {
  VirtualWorld world("2026-11-18T12:05:10Z", {.sole = GetParam()});
  world.limit(limit_of(10));
  EXPECT_EQ(started(world.requests(10, "/a")), 10);
  world.clock.set_wall(world.clock.wall_now() - 90s);
  const Requests late = world.requests(10, "/a");
  EXPECT_EQ(started(late), 0);
  world.pass(139s);
  EXPECT_EQ(started(late), 0);
  world.pass(1s);  // 12:06:00, at last
  EXPECT_EQ(started(late), 10);
}

TEST_P(OneProcess, WindowsAClockSetForwardBeginsTheNextAtOnce) {
  VirtualWorld world("2026-11-18T12:05:10Z", {.sole = GetParam()});
  world.limit(limit_of(1));
  world.request("/a");
  const auto waiting = world.request("/a");
  world.clock.set_wall(world.clock.wall_now() + 1h);
  world.pass(1s);
  EXPECT_TRUE(waiting->started());
}

TEST(Sliding, NoIntervalOfTheWindowsLengthHasMoreThanTheLimit) {
  VirtualWorld world("2026-11-18T12:00:30Z");
  world.limit(limit_of(5, Mode::sliding, 10s));
  const Requests requests = world.requests(40, "/a");
  world.pass(2min);
  ASSERT_EQ(started(requests), 40);
  for (std::size_t i = 5; i < requests.size(); ++i) {
    EXPECT_GE(requests[i]->started_at() - requests[i - 5]->started_at(), 10s);
  }
}

TEST(Sliding, NearlyAllOfTheLimitIsUsed) {
  VirtualWorld world("2026-11-18T12:00:30Z");
  world.limit(limit_of(300, Mode::sliding, 10s));
  const Requests requests = world.requests(3000, "/a");
  world.pass(95s);
  EXPECT_GE(started(requests), 2900);
}

TEST(InFlight, ALongOneKeepsItsUnitWhileTheLeaseIsKeptAlive) {
  VirtualWorld world("2026-11-18T12:00:30Z", {.replicas = 2});
  world.limit(limit_of(1, Mode::in_flight));
  const auto served = world.request("/a", 0);
  const auto waiting = world.request("/a", 1);
  world.pass(1h);
  EXPECT_TRUE(served->started());
  EXPECT_FALSE(waiting->started());
  served->finish();
  world.pass(1s);
  EXPECT_TRUE(waiting->started()) << "what is free on one replica is for the other";
}

TEST(InFlight, ALimitWithManyUnitsToAClaimIsSharedToo) {
  VirtualWorld world("2026-11-18T12:00:30Z", {.replicas = 2});
  world.limit(limit_of(1000, Mode::in_flight));
  const Requests one = world.requests(1000, "/a", 0);
  EXPECT_GE(started(one), 500) << "its share at once,";
  EXPECT_LT(started(one), 600);
  world.pass(100ms);
  EXPECT_EQ(started(one), 1000) << "and the rest if nobody else comes";
  const Requests two = world.requests(10, "/a", 1);
  for (int i = 0; i < 10; ++i) one[i]->finish();
  world.pass(2s);
  EXPECT_EQ(started(two), 10);
}

TEST_P(OneProcess, ImpatientIsToldAtOnceThatNoneIsFree) {
  VirtualWorld world("2026-11-18T12:00:30Z", {.sole = GetParam()});
  world.limit(limit_of(1));
  EXPECT_TRUE(world.request("/a", 0, "", false)->started());
  EXPECT_EQ(world.request("/a", 0, "", false)->refusal(), Refusal::limit);
  EXPECT_EQ(world.request("/a", 0, "", false)->refusal(), Refusal::limit);
  world.pass(30s);
  EXPECT_TRUE(world.request("/a", 0, "", false)->started());
}

TEST_P(OneProcess, FairATenantNewToTheLineIsServedWithinOneRound) {
  VirtualWorld world("2026-11-18T12:00:30Z", {.sole = GetParam()});
  Limit limit = limit_of(2);
  limit.queue = Queue::fair;
  world.limit(limit);
  world.requests(2, "/a");
  Requests greedy;
  for (int i = 0; i < 10; ++i) greedy.push_back(world.request("/a", 0, "greedy"));
  const auto modest = world.request("/a", 0, "modest");
  world.pass(30s);
  EXPECT_EQ(started(greedy), 1);
  EXPECT_TRUE(modest->started());
}

TEST(Full, ResourcesCostNothing) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.replicas = 2});
  world.limit(limit_of(10));
  const Requests used = world.requests(10, "/a", 0);
  world.pass(100ms);
  Requests waiting = world.requests(1, "/a", 1);
  const Revision before = world.store.revision();
  const auto conflicts = world.replica(1).stats().conflict.load();
  for (auto& request : world.requests(500, "/a", 1)) waiting.push_back(std::move(request));
  world.pass(20s);
  EXPECT_EQ(world.store.revision(), before);
  EXPECT_EQ(world.replica(1).stats().conflict.load(), conflicts);
}

TEST(Full, AClaimDeletedByHandComesBackToTheLine) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.replicas = 2});
  world.limit(limit_of(10));
  const Requests used = world.requests(10, "/a", 0);
  const auto waiting = world.request("/a", 1);
  world.store.txn({{}, {Delete{{world.keys("/weir/v1/claims/").front(), ""}}}, {}},
                  [](Answer<TxnAnswer>) {});
  world.pass(2s);
  EXPECT_TRUE(waiting->started());
}

TEST_P(OneProcess, ReloadALimitRaisedOrLoweredHoldsInTheSameWindow) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.sole = GetParam()});
  world.limit(limit_of(5));
  const Requests requests = world.requests(20, "/a");
  EXPECT_EQ(started(requests), 5);
  world.limit(limit_of(8));
  EXPECT_EQ(started(requests), 8);
  world.limit(limit_of(2));
  world.pass_until("2026-11-18T12:01:00Z");
  EXPECT_EQ(started(requests), 10);
}

TEST(Reload, WaitersAreServedUnderANewMode) {
  VirtualWorld world("2026-11-18T12:00:10Z");
  world.limit(limit_of(1, Mode::in_flight));
  const Requests requests = world.requests(3, "/a");
  EXPECT_EQ(started(requests), 1);
  world.limit(limit_of(2));
  EXPECT_EQ(started(requests), 3);
  EXPECT_EQ(world.keys("/weir/v1/claims/default:/a@in_flight/").size(), 1u) << "still served";
  requests.front()->finish();
  world.settle();
  EXPECT_TRUE(world.keys("/weir/v1/claims/default:/a@in_flight/").empty());
}

TEST(Stopping, ReturnsWhatWasNeverSpentAndNothingElse) {
  VirtualWorld world("2026-11-18T12:00:10Z");
  world.limit(limit_of(1000));
  Requests requests;
  for (int i = 0; i < 40; ++i) {  // steady use, so that units are claimed ahead
    requests.push_back(world.request("/a"));
    world.pass(100ms);
  }
  std::int64_t claimed = 0;
  world.replica().inspect(
      world.replica().policy("default"), "/a",
      [&](std::optional<Coordinator::Claims> claims) { claimed = claims.value()["r1"]; });
  EXPECT_GT(claimed, 40) << "nothing was claimed ahead, so that this test shows nothing";
  bool stopped = false;
  world.replica().drain();
  world.replica().stop([&] { stopped = true; });
  world.settle();
  EXPECT_TRUE(stopped);
  world.replica().inspect(
      world.replica().policy("default"), "/a",
      [&](std::optional<Coordinator::Claims> claims) { claimed = claims.value()["r1"]; });
  EXPECT_EQ(claimed, 40);
}

TEST_P(OneProcess, DrainingRefusesThoseInLineAndWhoWouldJoinIt) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.sole = GetParam()});
  world.limit(limit_of(1));
  const Requests requests = world.requests(3, "/a");
  world.replica().drain();
  EXPECT_EQ(requests[1]->refusal(), Refusal::draining);
  EXPECT_EQ(requests[2]->refusal(), Refusal::draining);
  EXPECT_EQ(world.request("/a")->refusal(), Refusal::draining);
}

TEST_P(OneProcess, DrainingServesThoseWhoNeedNoMoreThanAClaim) {
  VirtualWorld world("2026-11-18T12:00:10Z", {.sole = GetParam()});
  world.limit(limit_of(2));
  const auto asked = world.ask("/a");
  world.replica().drain();
  const auto behind = world.ask("/a");
  const auto too_many = world.ask("/a");
  world.settle();
  EXPECT_TRUE(asked->started());
  EXPECT_TRUE(behind->started());
  EXPECT_EQ(too_many->refusal(), Refusal::draining);
}

TEST(SteadyUse, OfALargeLimitTakesFewTransactions) {
  VirtualWorld world("2026-11-18T12:00:00Z");
  world.limit(limit_of(6000));
  Requests requests;
  const auto asked = [&](int count) {
    for (int i = 0; i < count; ++i) {
      requests.push_back(world.request("/a"));
      world.pass(10ms);
    }
  };
  asked(500);
  const Revision before = world.store.revision();
  asked(4000);
  EXPECT_EQ(started(requests), 4500);
  EXPECT_LE(world.store.revision() - before, 4000 / 20);
}

}  // namespace
}  // namespace weir
