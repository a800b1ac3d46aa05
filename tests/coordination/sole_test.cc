// Where no other process counts, allowances have their units by themselves: what is particular to
// that. What such a process has in common with others is in limit_cases_test.cc and reload_test.cc.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "tests/coordination/virtual_world.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Requests = VirtualWorld::Requests;

class Sole : public testing::TestWithParam<Mode> {
 protected:
  VirtualWorld world{"2026-11-18T12:00:10Z", {.max_resources = 4, .sole = true}};
};
INSTANTIATE_TEST_SUITE_P(Modes, Sole,
                         testing::Values(Mode::started, Mode::until_done, Mode::in_flight));

TEST_P(Sole, HasItsUnitsWithoutTheStoreAndWithoutTheCoordinator) {
  world.limit(limit_of(3, GetParam()));
  world.pass(1s);
  const int calls = world.way().calls();
  Requests requests;
  for (int i = 0; i < 4; ++i) requests.push_back(world.ask("/a"));
  EXPECT_EQ(started(requests), 3);
  world.pass(10min);
  EXPECT_EQ(world.way().calls(), calls);
  EXPECT_TRUE(world.keys("/weir/v1/claims/").empty());
}

TEST_P(Sole, SaysWhatIsUsed) {
  world.limit(limit_of(3, GetParam()));
  const Requests requests = world.requests(2, "/a");
  Coordinator& replica = world.replica();
  const ResourceView view = replica.view(*replica.find(replica.policy("default"), "/a"));
  EXPECT_EQ(view.used, 2);
  EXPECT_EQ(view.limit, 3);
  EXPECT_EQ(view.in_hand, 0) << "nothing is claimed and not used";
  std::optional<Coordinator::Claims> claims;
  replica.inspect(replica.policy("default"), "/a", [&](auto told) { claims = std::move(told); });
  EXPECT_EQ(claims, (Coordinator::Claims{{"r1", 2}}));
  EXPECT_EQ(replica.policy("default").claimed, 2u);
}

TEST_P(Sole, AUnitThatWasNotSpentIsForTheNextInLine) {
  world.limit(limit_of(1, GetParam()));
  Coordinator& replica = world.replica();
  const auto allowance = replica.find(replica.policy("default"), "/a")->allowance();
  Waiter unsure;
  ASSERT_EQ(allowance->take(allowance, unsure, Queue::fifo, world.clock.now()),
            Allowance::Taken::granted);
  const auto next = world.ask("/a");
  EXPECT_FALSE(next->started());
  unsure.permit.settle();
  EXPECT_TRUE(next->started());
  EXPECT_EQ(replica.policy("default").returned, 1u);
}

TEST_P(Sole, WhatItUsesIsNotForgottenHoweverManyOthersAreAskedFor) {
  world.limit(limit_of(1, GetParam()));
  world.replica().configure({{"default", limit_of(1, GetParam())}}, 4, 1000);
  const Requests used = world.requests(1, "/a");
  Requests others;
  for (int i = 0; i < 50; ++i) others.push_back(world.request("/" + std::to_string(i)));
  EXPECT_EQ(started(others), 3 + 1) << "a unit for each name, then that of the overflow";
  EXPECT_FALSE(world.request("/a")->started());
}

TEST(SoleProcess, ForgetsAWindowThatIsOverAndNeverOpensItAgain) {
  VirtualWorld world("2026-11-18T12:05:10Z", {.max_resources = 1, .sole = true});
  world.replica().configure({{"default", limit_of(1)}}, 1, 1000);
  EXPECT_TRUE(world.request("/a")->started());
  world.pass(1min);
  EXPECT_TRUE(world.request("/b")->started()) << "in its place";
  world.clock.set_wall(world.clock.wall_now() - 1min);  // 12:05:10 once more
  world.pass(1s);
  const auto again = world.request("/b");
  EXPECT_FALSE(again->started());
  world.pass_until("2026-11-18T12:06:59Z");
  EXPECT_FALSE(again->started()) << "the window of 12:06 is used up";
  world.pass(1s);
  EXPECT_TRUE(again->started());
}

class SharedClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return SteadyTime{now_.load()}; }
  WallTime wall_now() const override { return WallTime{now_.load()}; }
  void pass(std::chrono::nanoseconds time) { now_ = now_.load() + time; }

 private:
  std::atomic<std::chrono::nanoseconds> now_{1h};
};

// Threads that take, send, give back and leave while the clock runs and the limit goes up and down:
// no window ever sees more than the highest limit it had, and none of it is lost on the way.
TEST(SoleProcess, KeepsToTheLimitInEveryWindowUnderManyThreads) {
  constexpr int limit = 50, threads = 8, windows = 60;
  SharedClock clock;
  WaitingRoom room;
  ForwardTime forward;
  std::atomic<std::uint64_t> claimed{0}, returned{0};
  const auto allowance =
      std::make_shared<Allowance>(clock, room, [] {}, Allowance::Sole{forward, claimed, returned});
  allowance->open_when_asked(limit_of(limit, Mode::started, 1s));
  std::atomic<bool> over{false};
  std::array<std::atomic<int>, windows + 1> spent{};
  const WallTime begin = clock.wall_now();
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      for (std::uint64_t turn = 0; !over; ++turn) {
        Waiter waiter;
        waiter.patient = false;
        if (allowance->take(allowance, waiter, Queue::fifo, clock.now()) !=
            Allowance::Taken::granted) {
          std::this_thread::yield();
          continue;
        }
        const Instant now = clock.now();
        if ((turn + static_cast<std::uint64_t>(i)) % 3 == 0 || !waiter.permit.good(now)) continue;
        waiter.permit.spend();
        ++spent[static_cast<std::size_t>((now.wall - begin) / 1s)];
      }
    });
  }
  for (int window = 0; window < windows; ++window) {
    allowance->open(limit_of(window % 2 == 0 ? limit : limit / 2, Mode::started, 1s),
                    forward.read(clock.wall_now()));
    // Each window lasts until it is used up.
    while (allowance->summary().state.used < limit / 2) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) clock.pass(1ms);
  }
  over = true;
  workers.clear();
  int sum = 0;
  for (int window = 0; window < windows; ++window) {
    EXPECT_LE(spent[static_cast<std::size_t>(window)], limit) << "in window " << window;
    sum += spent[static_cast<std::size_t>(window)];
  }
  EXPECT_GE(sum, windows * limit / 4);
  EXPECT_EQ(claimed - returned, static_cast<std::uint64_t>(sum));
}

}  // namespace
}  // namespace weir
