#include "coordination/etcd/calls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace weir::etcd {
namespace {

// What is posted waits until the test runs it.
class Loop {
 public:
  Post post() {
    return [this](std::function<void()> step) {
      const std::lock_guard lock(mutex_);
      steps_.push_back(std::move(step));
    };
  }
  bool run_one() {
    std::function<void()> step;
    {
      const std::lock_guard lock(mutex_);
      if (steps_.empty()) return false;
      step = std::move(steps_.front());
      steps_.pop_front();
    }
    step();
    return true;
  }
  void run() {
    while (run_one()) {
    }
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return steps_.size();
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> steps_;  // guarded by mutex_
};

struct Counts {
  int finished = 0, destroyed = 0, stepped = 0, cancelled = 0;
};

// A call whose other side is a thread of the test. Its fields are plain: what orders them is Calls.
class FakeCall final : public Call {
 public:
  explicit FakeCall(Counts& counts) : counts_(counts) {}
  ~FakeCall() override { ++counts_.destroyed; }
  void cancel() override {
    ++counts_.cancelled;
    cancelled = true;
  }
  void finish() override {
    ++counts_.finished;
    EXPECT_EQ(result, "done");
  }

  std::string result;  // written by the other side, read by finish()
  std::optional<Calls::Landing> landing;
  std::atomic<bool> cancelled{false};

 private:
  Counts& counts_;
};

FakeCall& launch(Calls& calls, Counts& counts) {
  auto owned = std::make_unique<FakeCall>(counts);
  FakeCall& call = *owned;
  call.landing = calls.add(std::move(owned));
  return call;
}

void land(FakeCall& call) {
  call.result = "done";
  call.landing->land();
}

TEST(Calls, ACallThatLandedIsFinishedAndDestroyedOnTheLoop) {
  Loop loop;
  Counts counts;
  Calls calls(loop.post());
  FakeCall& call = launch(calls, counts);
  EXPECT_EQ(calls.size(), 1U);
  std::thread([&] { land(call); }).join();
  EXPECT_EQ(counts.finished, 0) << "not before the loop runs";
  loop.run();
  EXPECT_EQ(counts.finished, 1);
  EXPECT_EQ(counts.destroyed, 1);
  EXPECT_EQ(calls.size(), 0U);
}

TEST(Calls, StepsComeInOrderAndBeforeTheEnd) {
  Loop loop;
  Counts counts;
  Calls calls(loop.post());
  FakeCall& call = launch(calls, counts);
  std::vector<int> order;
  std::thread([&] {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(call.landing->post([&, i] {
        EXPECT_EQ(counts.finished, 0);
        order.push_back(i);
      }));
    }
    land(call);
  }).join();
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(counts.finished, 1);
}

TEST(Calls, WhatWasPostedBeforeTheEndDoesNothingAfterIt) {
  Loop loop;
  Counts counts;
  std::optional<Calls> calls(loop.post());
  FakeCall& call = launch(*calls, counts);
  call.landing->post([&] { ++counts.stepped; });
  calls->defer([&] { ++counts.stepped; });
  land(call);
  EXPECT_EQ(loop.size(), 3U);
  calls.reset();
  loop.run();
  EXPECT_EQ(counts.stepped, 0);
  EXPECT_EQ(counts.finished, 0);
  EXPECT_EQ(counts.destroyed, 1);
}

TEST(Calls, TheEndCancelsWhatIsUnderWayAndWaitsForItToLand) {
  Loop loop;
  Counts counts;
  std::optional<Calls> calls(loop.post());
  FakeCall& call = launch(*calls, counts);
  std::atomic<bool> landed{false};
  std::thread other([&] {
    while (!call.cancelled) std::this_thread::yield();
    EXPECT_FALSE(call.landing->post([] {})) << "nobody is there any more";
    landed = true;
    land(call);
  });
  calls.reset();
  EXPECT_TRUE(landed);
  EXPECT_EQ(counts.cancelled, 1);
  EXPECT_EQ(counts.finished, 0);
  EXPECT_EQ(counts.destroyed, 1);
  EXPECT_EQ(loop.size(), 0U);
  other.join();
}

// The loop runs, ends and is torn down while threads post and land.
TEST(Calls, ThreadsMayLandAtAnyTime) {
  constexpr int kCalls = 8, kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    Loop loop;
    Counts counts;
    std::vector<std::thread> threads;
    {
      Calls calls(loop.post());
      for (int i = 0; i < kCalls; ++i) {
        FakeCall& call = launch(calls, counts);
        threads.emplace_back([&call, &counts] {
          for (int step = 0; step < 3; ++step) call.landing->post([&counts] { ++counts.stepped; });
          land(call);
        });
      }
      for (int i = 0; i < round % (4 * kCalls); ++i) loop.run_one();
    }
    EXPECT_EQ(counts.destroyed, kCalls);
    for (std::thread& thread : threads) thread.join();
    const int finished = counts.finished, stepped = counts.stepped;
    loop.run();
    EXPECT_EQ(counts.finished, finished);
    EXPECT_EQ(counts.stepped, stepped);
  }
}

}  // namespace
}  // namespace weir::etcd
