#include "coordination/allowance.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/coordination/virtual_world.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<Batch> batch_of(const Clock& clock, std::int64_t units, Mode mode) {
  auto batch = std::make_shared<Batch>();
  batch->mode = mode;
  batch->fence = std::make_shared<Fence>(clock.steady_now() + 1h);
  batch->in_hand = units;
  return batch;
}

struct AllowanceTest : testing::Test {
  std::unique_ptr<Request> ask() { return std::make_unique<Request>(clock, self, Queue::fifo); }

  ManualClock clock;
  WaitingRoom room;
  int asked = 0;
  std::shared_ptr<Allowance> self = std::make_shared<Allowance>(clock, room, [this] { ++asked; });
};

TEST_F(AllowanceTest, AsksOnceUntilItHasBeenLookedAt) {
  const auto one = ask();
  const auto two = ask();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(self->look().waiting, 2u);
  const auto three = ask();
  EXPECT_EQ(asked, 2);
}

TEST_F(AllowanceTest, WakesAsManyAsThereAreUnitsInTheOrderOfArrival) {
  const auto one = ask();
  const auto two = ask();
  const auto three = ask();
  self->bring(batch_of(clock, 2, Mode::started));
  EXPECT_TRUE(one->started());
  EXPECT_TRUE(two->started());
  EXPECT_LT(one->order(), two->order());
  EXPECT_TRUE(three->waiting());
  EXPECT_EQ(room.waiting, 1u);
}

TEST_F(AllowanceTest, AUnitThatWasNotSpentGoesToTheNextInLine) {
  self->bring(batch_of(clock, 1, Mode::started));
  Waiter first;
  ASSERT_EQ(self->take(self, first, Queue::fifo, clock.now()), Allowance::Taken::granted);
  const auto next = ask();
  EXPECT_FALSE(next->started());
  first.permit.settle();
  EXPECT_TRUE(next->started());
}

TEST_F(AllowanceTest, APermitIsSettledOnce) {
  self->bring(batch_of(clock, 1, Mode::in_flight));
  Waiter waiter;
  self->take(self, waiter, Queue::fifo, clock.now());
  waiter.permit.spend();
  waiter.permit.settle();
  waiter.permit.settle();
  Permit moved = std::move(waiter.permit);
  moved.settle();
  EXPECT_EQ(self->look().in_hand, 1);
}

TEST_F(AllowanceTest, NothingIsSpentBehindAClosedFence) {
  auto batch = batch_of(clock, 5, Mode::started);
  self->bring(batch);
  Waiter early;
  ASSERT_EQ(self->take(self, early, Queue::fifo, clock.now()), Allowance::Taken::granted);
  EXPECT_TRUE(early.permit.good(clock.now()));
  clock.pass(1h);
  EXPECT_FALSE(early.permit.good(clock.now())) << "paused between claim and sending";
  const auto late = ask();
  EXPECT_TRUE(late->waiting());
  EXPECT_EQ(self->look().lost, 4);
}

TEST_F(AllowanceTest, UnitsOfAWindowThatIsOverAreLost) {
  auto batch = batch_of(clock, 3, Mode::until_done);
  batch->window_end = clock.wall_now() + 10s;
  self->bring(batch);
  const auto served = ask();
  ASSERT_TRUE(served->started());
  clock.pass(10s);
  served->finish();
  const Allowance::Demand demand = self->look();
  EXPECT_EQ(demand.in_hand, 0);
  EXPECT_EQ(demand.lost, 2) << "those never spent; the one that was is simply over";
}

TEST_F(AllowanceTest, WhatComesBackAboveTheShareStaysWhereNobodyElseWantsIt) {
  Allowance::State state;
  state.limit = 1;
  state.above_share = true;
  self->set(state);
  self->bring(batch_of(clock, 1, Mode::until_done));
  for (int i = 0; i < 2; ++i) {
    const auto served = ask();
    ASSERT_TRUE(served->started());
    served->finish();
    EXPECT_EQ(self->look().in_hand, 1);
  }
}

TEST_F(AllowanceTest, MoreThanMayWaitAreTurnedAway) {
  room.max = 1;
  Allowance::State full;
  full.full = true;
  self->set(full);
  const auto one = ask();
  const auto two = ask();
  EXPECT_TRUE(one->waiting());
  EXPECT_EQ(two->refusal(), Refusal::queue_full);
}

TEST_F(AllowanceTest, IsIdleOnlyWhenNothingOfItIsLeft) {
  EXPECT_TRUE(self->idle(clock.now()));
  self->bring(batch_of(clock, 1, Mode::in_flight));
  EXPECT_FALSE(self->idle(clock.now()));
  {
    const auto served = ask();
    EXPECT_FALSE(self->idle(clock.now())) << "a unit is out";
    served->finish();
  }
  clock.pass(1h);
  EXPECT_FALSE(self->idle(clock.now())) << "its time is over, which nobody has heard of";
  EXPECT_EQ(self->look().surplus.size(), 1u);
  EXPECT_TRUE(self->idle(clock.now()));
}

// For the sanitizers, and for the count: every unit is used once, whoever takes, leaves and
// settles.
TEST(Threads, TakeAndLeaveAndSettleAtOnceWithoutLosingAUnit) {
  ManualClock clock;
  WaitingRoom room;
  std::atomic<bool> wanted{false};
  auto allowance = std::make_shared<Allowance>(clock, room, [&] { wanted = true; });
  constexpr int kThreads = 4;
  constexpr int kRounds = 5'000;
  std::atomic<std::int64_t> used{0};
  std::atomic<int> running{kThreads};
  std::atomic<std::int64_t> in_flight{0};
  std::atomic<bool> over{false};

  struct Asker {
    std::atomic<bool> woken{false};
    Waiter waiter;
  };
  const auto work = [&](int seed) {
    SeededRandom random(static_cast<std::uint64_t>(seed));
    for (int i = 0; i < kRounds; ++i) {
      Asker asker;
      asker.waiter.wake = [](void* who) { static_cast<Asker*>(who)->woken = true; };
      asker.waiter.who = &asker;
      if (allowance->take(allowance, asker.waiter, Queue::fifo, clock.now()) ==
          Allowance::Taken::waiting) {
        const bool impatient = random.below(4) == 0;
        if (impatient && allowance->leave(asker.waiter)) continue;
        while (!asker.woken) std::this_thread::yield();
      }
      if (!asker.waiter.permit || random.below(8) == 0) continue;  // not sent after all
      asker.waiter.permit.spend();
      if (++in_flight > 3) over = true;
      ++used;
      --in_flight;
      asker.waiter.permit.settle();
    }
    --running;
  };
  allowance->bring(batch_of(clock, 3, Mode::in_flight));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  while (running > 0) {
    if (wanted.exchange(false)) allowance->look();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(over);
  EXPECT_GT(used, kRounds);
  EXPECT_EQ(allowance->look().in_hand, 3);
  EXPECT_EQ(room.waiting, 0u);
}

}  // namespace
}  // namespace weir
