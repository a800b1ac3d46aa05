#include "proxy/http/task.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "proxy/http/loop.h"

namespace weir::http {
namespace {

class StillClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return {}; }
  WallTime wall_now() const override { return {}; }
};

class Tasks : public ::testing::Test {
 protected:
  Task<int> number(int value) { co_return value; }
  Task<int> number_later(int value) {
    co_await wakeup_.wait();
    co_return value;
  }
  Task<int> sum(Task<int> a, Task<int> b) {
    const int first = co_await std::move(a);
    co_return first + co_await std::move(b);
  }
  Task<void> store(Task<int> from) { stored_ = co_await std::move(from); }
  Task<int> fault() {
    co_await wakeup_.wait();
    throw std::runtime_error("a fault");
  }
  Task<void> catch_fault() {
    try {
      stored_ = co_await fault();
    } catch (const std::runtime_error&) {
      stored_ = -1;
    }
  }

  StillClock clock_;
  Loop loop_{clock_};
  Wakeup wakeup_{loop_};
  int stored_ = 0;
  int ended_ = 0;
};

TEST_F(Tasks, WhatNeedNotWaitIsOverWhenSpawnReturns) {
  spawn(store(sum(number(1), number(2))), [&] { ++ended_; });
  EXPECT_EQ(stored_, 3);
  EXPECT_EQ(ended_, 1);
}

TEST_F(Tasks, WhoAwaitsOneThatWaitsGoesOnWhenItIsWoken) {
  spawn(store(sum(number_later(1), number_later(2))), [&] { ++ended_; });
  EXPECT_TRUE(wakeup_.waiting());
  wakeup_.wake_now();
  EXPECT_TRUE(wakeup_.waiting());
  EXPECT_EQ(ended_, 0);
  wakeup_.wake_now();
  EXPECT_FALSE(wakeup_.waiting());
  EXPECT_EQ(stored_, 3);
  EXPECT_EQ(ended_, 1);
}

TEST_F(Tasks, WakeResumesFromTheLoopAndNotAtOnce) {
  spawn(store(number_later(4)), [&] { loop_.stop(); });
  wakeup_.wake();
  EXPECT_EQ(stored_, 0);
  loop_.run();
  EXPECT_EQ(stored_, 4);
}

TEST_F(Tasks, WhatOneThrowsComesOutWhereItIsAwaited) {
  spawn(catch_fault(), [&] { ++ended_; });
  wakeup_.wake_now();
  EXPECT_EQ(stored_, -1);
  EXPECT_EQ(ended_, 1);
}

TEST_F(Tasks, OneThatNobodyAwaitsEndsAlsoIfItThrows) {
  spawn(store(fault()), [&] { ++ended_; });
  wakeup_.wake_now();
  EXPECT_EQ(ended_, 1);
}

Task<int> count_down(int from, Task<int> (*step)(int)) {
  int left = from;
  while (left > 0) left = co_await step(left);
  co_return left;
}

// Each would be a frame of the stack if one resumed the next.
TEST_F(Tasks, ALoopOfOnesThatNeedNotWaitUsesNoStack) {
  const auto step = [](int left) -> Task<int> { co_return left - 1; };
  spawn(store(count_down(2'000'000, step)), [&] { ++ended_; });
  EXPECT_EQ(ended_, 1);
}

}  // namespace
}  // namespace weir::http
