#include "proxy/attempt/retry_throttle.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir {
namespace {

TEST(RetryThrottle, AFailureCostsATokenAndRetriesNeedMoreThanHalf) {  // G-3
  RetryThrottle throttle({4000, 1600});
  EXPECT_TRUE(throttle.failure());  // 3
  throttle.success();               // 4: never more than the maximum
  EXPECT_EQ(throttle.milli(), 4000);
  EXPECT_TRUE(throttle.failure());   // 3
  EXPECT_FALSE(throttle.failure());  // 2: half is not enough
  EXPECT_FALSE(throttle.failure());  // 1
  EXPECT_FALSE(throttle.failure());  // 0
  EXPECT_FALSE(throttle.failure());  // 0: never less
  EXPECT_EQ(throttle.milli(), 0);
  throttle.success();                // 1.6
  throttle.success();                // 3.2
  EXPECT_TRUE(throttle.failure());   // 2.2
  EXPECT_FALSE(throttle.failure());  // 1.2
  throttle.success();                // 2.8
  EXPECT_FALSE(throttle.failure());  // 1.8
  throttle.success();                // 3.4
  EXPECT_TRUE(throttle.failure());   // 2.4
  EXPECT_EQ(throttle.milli(), 2400);
}

TEST(RetryThrottle, AChangeOfItsOptionsKeepsTheFraction) {  // G-4
  auto old = RetryThrottle::successor(nullptr, {4000, 1000});
  EXPECT_TRUE(old->failure());
  EXPECT_EQ(RetryThrottle::successor(old, {4000, 1000}), old);
  auto fresh = RetryThrottle::successor(old, {10'000, 3000});
  EXPECT_EQ(fresh->milli(), 7500);
  EXPECT_TRUE(old->failure()) << "who holds the old one takes from the new";
  EXPECT_EQ(fresh->milli(), 6500);
  EXPECT_TRUE(old->failure());
  EXPECT_FALSE(old->failure());
  EXPECT_FALSE(old->failure());
  EXPECT_EQ(fresh->milli(), 3500);
  old->success();
  EXPECT_EQ(fresh->milli(), 6500);
  EXPECT_TRUE(fresh->failure());
  EXPECT_FALSE(fresh->failure());
}

TEST(RetryThrottle, ChangedOptionsAreThoseOfTheNextChangeToo) {
  auto first = RetryThrottle::successor(nullptr, {4000, 1000});
  auto second = RetryThrottle::successor(first, {10'000, 3000});
  EXPECT_EQ(RetryThrottle::successor(second, {10'000, 3000}), second);
  auto third = RetryThrottle::successor(second, {4000, 1000});
  first->failure();
  EXPECT_EQ(third->milli(), 3000);
}

TEST(RetryThrottle, SuccessesFillItUpToItsMaximum) {  // G-5
  RetryThrottle throttle({4000, 800});
  EXPECT_TRUE(throttle.failure());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(throttle.failure());
  throttle.success();
  throttle.success();
  EXPECT_FALSE(throttle.enough());
  throttle.success();
  EXPECT_EQ(throttle.milli(), 2400);
  EXPECT_TRUE(throttle.enough());
  for (int i = 0; i < 5; ++i) throttle.success();
  EXPECT_EQ(throttle.milli(), 4000);
}

TEST(RetryThrottle, OfTwoTokensTheFirstFailureLeavesTooFew) {  // G-6
  RetryThrottle throttle({2000, 1000});
  EXPECT_FALSE(throttle.failure());
}

TEST(RetryThrottle, CountsExactlyWhateverThreadsCallIt) {
  RetryThrottle throttle({1'000'000, 1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) throttle.failure();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(throttle.milli(), 200'000);
}

}  // namespace
}  // namespace weir
