#include "proxy/throttle/aimd_rate.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/proxy/throttle/scenario.h"

namespace weir::test {
namespace {

constexpr int kThreads = 8;

template <class Work>
void on_all_threads(Work work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
}

TEST(AimdRate, GrowsByTheIncreaseAndShrinksByTheFactor) {
  AimdRate rate({.initial = 100, .floor = 5, .increase = 2, .decrease = 0.5});
  rate.success();
  EXPECT_EQ(rate.value(), 102);
  rate.overload(at(0));
  rate.overload(at(0));
  EXPECT_EQ(rate.value(), 25.5);
}

TEST(AimdRate, StaysBetweenFloorAndCeiling) {
  AimdRate rate({.initial = 10, .floor = 5, .ceiling = 12});
  for (int i = 0; i < 10; ++i) rate.success();
  EXPECT_EQ(rate.value(), 12);
  for (int i = 0; i < 10; ++i) rate.overload(at(i));
  EXPECT_EQ(rate.value(), 5);
}

TEST(AimdRate, AGapLetsOneOverloadCountForAllThatComeWithinIt) {
  AimdRate rate({.initial = 100, .min_decrease_gap = std::chrono::milliseconds{100}});
  rate.overload(at(0));
  rate.overload(at(0.05));
  EXPECT_DOUBLE_EQ(rate.value(), 70);
  rate.overload(at(0.1));
  EXPECT_DOUBLE_EQ(rate.value(), 49);
}

TEST(AimdRate, AMillionSuccessesOfEightThreadsAllCount) {  // F-8
  AimdRate rate({.initial = 100});
  on_all_threads([&](int) {
    for (int i = 0; i < 1'000'000 / kThreads; ++i) rate.success();
  });
  EXPECT_EQ(rate.value(), 100 + 1'000'000);
}

TEST(AimdRate, OverloadsOfEightThreadsAllCount) {
  AimdRate rate({.initial = 1e300, .floor = 0, .decrease = 0.5});
  on_all_threads([&](int) {
    for (int i = 0; i < 100; ++i) rate.overload(at(i));
  });
  EXPECT_EQ(rate.value(), std::ldexp(1e300, -100 * kThreads));
}

TEST(AimdRate, WithinAGapOneOfEightThreadsCounts) {
  AimdRate rate({.initial = 1024, .decrease = 0.5, .min_decrease_gap = std::chrono::seconds{1}});
  on_all_threads([&](int) { rate.overload(at(5)); });
  EXPECT_EQ(rate.value(), 512);
}

TEST(AimdRate, FeedbackThatAllSeeBringsRatesTogether) {  // F-13
  AimdRate large({.initial = 90, .floor = 0});
  AimdRate small({.initial = 10, .floor = 0});
  int decreases = 0;
  double index = jain({90, 10});
  while (large.value() - small.value() >= 1) {
    if (large.value() + small.value() < 100) {
      large.success();
      small.success();
    } else {
      large.overload(at(0));
      small.overload(at(0));
      ++decreases;
    }
    const double now = jain({large.value(), small.value()});
    EXPECT_GE(now, index - 1e-12) << "it never falls";
    index = now;
  }
  EXPECT_EQ(decreases, 13);
}

TEST(AimdRate, GoesOnFromALearnedRateWithinItsBounds) {
  AimdRate rate({.initial = 10, .floor = 5, .ceiling = 12});
  rate.start_at(7);
  EXPECT_EQ(rate.value(), 7);
  rate.start_at(100);
  EXPECT_EQ(rate.value(), 12);
  rate.start_at(0.1);
  EXPECT_EQ(rate.value(), 5);
}

}  // namespace
}  // namespace weir::test
