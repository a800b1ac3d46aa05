// Limits that change while they are in use, and what is bounded.

#include <gtest/gtest.h>

#include "tests/coordination/virtual_world.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Requests = VirtualWorld::Requests;

// What a replica that claims its units and one that is the only one to count them have in common.
class ReloadedProcess : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Counts, ReloadedProcess, testing::Bool(), [](const auto& is_sole) {
  return is_sole.param ? "ByItself" : "InTheStore";
});

// Ends those that run, one after another; those who wait take their place.
int most_at_once(VirtualWorld& world, Requests& running, int ends) {
  int most = 0;
  for (int i = 0; i < ends; ++i) {
    int now = 0;
    for (const auto& request : running) now += request->started() ? 1 : 0;
    most = std::max(most, now);
    const auto first = std::find_if(running.begin(), running.end(),
                                    [](const auto& request) { return request->started(); });
    if (first == running.end()) return most;
    (*first)->finish();
    running.erase(first);
    world.pass(50ms);
  }
  return most;
}

class LoweredLimit : public testing::TestWithParam<std::tuple<Mode, bool>> {};

TEST_P(LoweredLimit, IsReachedAsRequestsEnd) {
  const auto [mode, sole] = GetParam();
  VirtualWorld world("2026-11-18T12:00:01Z", {.sole = sole});
  world.limit(limit_of(50, mode));
  Requests requests = world.requests(150, "/a");
  ASSERT_EQ(started(requests), 50);
  world.limit(limit_of(5, mode));
  world.pass(1s);
  most_at_once(world, requests, 60);  // the first ones were let through before
  EXPECT_EQ(most_at_once(world, requests, 20), 5);
}

INSTANTIATE_TEST_SUITE_P(Modes, LoweredLimit,
                         testing::Combine(testing::Values(Mode::in_flight, Mode::until_done),
                                          testing::Bool()));

TEST_P(ReloadedProcess, LoweredLimitStartedUnitsInHandAreNotSpent) {
  VirtualWorld world("2026-11-18T12:00:01Z", {.sole = GetParam()});
  world.limit(limit_of(10'000));
  Requests all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(world.request("/a"));
    world.pass(10ms);
  }
  world.limit(limit_of(10));
  world.pass(10ms);
  EXPECT_EQ(started(world.requests(100, "/a")), 0);
}

TEST_P(ReloadedProcess, ReloadedWindowWhatWasUsedStaysUsedWhenTheOldOneComesBack) {
  VirtualWorld world("2026-11-18T12:10:00Z", {.sole = GetParam()});
  const Limit hourly = limit_of(5, Mode::started, 3600s);
  world.limit(hourly);
  ASSERT_EQ(started(world.requests(7, "/a")), 5);
  for (const Limit& between :
       {limit_of(5, Mode::started, 600s), limit_of(5, Mode::until_done, 3600s),
        limit_of(5, Mode::sliding, 60s), limit_of(5, Mode::in_flight)}) {
    world.limit(between);
    world.requests(3, "/a");
    world.pass(2s);
    world.limit(hourly);
    world.pass(1s);
    EXPECT_EQ(started(world.requests(5, "/a")), 0);
  }
}

TEST_P(ReloadedProcess, ReloadedModeRequestsInFlightAreStillCountedWhenTheModeComesBack) {
  VirtualWorld world("2026-11-18T12:10:00Z", {.sole = GetParam()});
  world.limit(limit_of(2, Mode::in_flight));
  Requests running = world.requests(1, "/a");
  world.limit(limit_of(2));
  world.request("/a");
  world.pass(2s);
  world.limit(limit_of(2, Mode::in_flight));
  const Requests more = world.requests(2, "/a");
  EXPECT_EQ(started(more), 1);
  running.clear();
  world.pass(1s);
  EXPECT_EQ(started(more), 2);
}

TEST(ReloadedMode, RequestsThatEndMeanwhileGiveTheirUnitBack) {
  VirtualWorld world("2026-11-18T12:10:00Z");
  world.limit(limit_of(2, Mode::in_flight));
  Requests running = world.requests(2, "/a");
  world.limit(limit_of(2));
  world.pass(1s);
  running.clear();
  world.pass(1s);
  EXPECT_TRUE(world.keys("/weir/v1/claims/default:/a@in_flight/").empty());
}

TEST_P(ReloadedProcess, ForgettingNamesThatStayDoNotKeepOthersFromBeingForgotten) {
  VirtualWorld world("2026-11-18T12:00:00Z", {.max_resources = 100, .sole = GetParam()});
  for (auto* policy : {"long", "short"}) world.replica().policy(policy);
  world.replica().configure(
      {{"long", limit_of(1, Mode::started, 86400s)}, {"short", limit_of(1, Mode::started, 1s)}},
      100, 1000);
  const auto use = [&](const char* rule, const std::string& name) {
    Policy& policy = world.replica().policy(rule);
    Request(world.clock, world.replica().find(policy, name)->allowance(), Queue::fifo);
    world.settle();
    world.pass(1ms);
  };
  for (int i = 0; i < 40; ++i) use("long", "/l" + std::to_string(i));
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 30; ++i) use("short", "/s" + std::to_string(round * 30 + i));
    world.pass(2s);
  }
  EXPECT_LE(world.replica().resources().size(), 102u) << "and the overflow of each rule";
  EXPECT_LE(world.replica().resources().overflows(), 20u) << "of 640";
}

TEST_P(ReloadedProcess, MaxWaitingDoesNotCountTheRoundTripOfAClaim) {
  VirtualWorld world("2026-11-18T12:00:00Z", {.sole = GetParam()});
  world.limit(limit_of(100));
  world.replica().configure({{"default", limit_of(100)}}, 1000, 1);
  Requests requests;
  for (int i = 0; i < 80; ++i) requests.push_back(world.ask("/a"));  // before the coordinator looks
  world.settle();
  EXPECT_EQ(started(requests), 80);
}

TEST_P(ReloadedProcess, MaxWaitingTurnsTheLastOnesAwayOnceItIsKnownThatTheyHaveToWait) {
  VirtualWorld world("2026-11-18T12:00:00Z", {.sole = GetParam()});
  world.replica().configure({{"default", limit_of(10)}}, 1000, 3);
  Requests requests;
  for (int i = 0; i < 20; ++i) requests.push_back(world.ask("/a"));
  world.settle();
  EXPECT_EQ(started(requests), 10);
  for (std::size_t i = 10; i < 13; ++i) EXPECT_TRUE(requests[i]->waiting()) << i;
  for (std::size_t i = 13; i < 20; ++i) EXPECT_EQ(requests[i]->refusal(), Refusal::queue_full) << i;
}

}  // namespace
}  // namespace weir
