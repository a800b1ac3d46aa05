#include "proxy/attempt/retry_budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr SteadyTime kStart{1234567ms};

int granted_of(RetryBudget& budget, int requests) {
  int granted = 0;
  for (int i = 0; i < requests; ++i) {
    budget.on_first_try(kStart);
    granted += budget.try_retry(kStart) ? 1 : 0;
  }
  return granted;
}

TEST(RetryBudget, GrantsItsShareOfFirstTries) {  // B-1
  for (double share : {0.0001, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.99, 0.999, 0.9999}) {
    RetryBudget budget(share, 0, 60s, kStart);
    EXPECT_NEAR(granted_of(budget, 10'000), std::trunc(10'000 * share), 1) << share;
  }
}

TEST(RetryBudget, AShareAboveOneGrantsSeveralRetriesForATry) {  // B-2
  RetryBudget budget(2.0, 0, 60s, kStart);
  for (int i = 0; i < 10'000; ++i) budget.on_first_try(kStart);
  EXPECT_EQ(budget.affordable(kStart), 20'000);
}

TEST(RetryBudget, TheReserveGrantsSoManyPerSecondWithoutAnyTry) {  // B-3
  RetryBudget budget(0, 10, 1s, kStart);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(budget.try_retry(kStart)) << i;
  EXPECT_FALSE(budget.try_retry(kStart));
  EXPECT_TRUE(budget.try_retry(kStart + 1s)) << "what was taken is forgotten after the ttl";
}

TEST(RetryBudget, ReserveAndShareAddUp) {  // B-4
  RetryBudget budget(0.5, 5, 2s, kStart);
  EXPECT_NEAR(granted_of(budget, 10'000), 5010, 1);
}

TEST(RetryBudget, DepositsExpireAfterTheTtl) {  // B-5
  RetryBudget budget(1, 0, 1s, kStart);
  budget.on_first_try(kStart);
  EXPECT_FALSE(budget.try_retry(kStart + 3s));
}

TEST(RetryBudget, DepositsExpireOneByOne) {  // B-6
  RetryBudget budget(0.5, 0, 1s, kStart);
  budget.on_first_try(kStart);
  budget.on_first_try(kStart);
  SteadyTime now = kStart + 901ms;
  EXPECT_TRUE(budget.try_retry(now));
  budget.on_first_try(now += 2001ms);
  budget.on_first_try(now += 301ms);
  budget.on_first_try(now += 801ms);
  EXPECT_TRUE(budget.try_retry(now)) << "the first has expired, the second and third have not";
  EXPECT_FALSE(budget.try_retry(now));
}

TEST(RetryBudget, NeitherShareNorReserveIsNever) {  // B-7
  RetryBudget budget(0, 0, 10s, kStart);
  EXPECT_EQ(granted_of(budget, 100), 0);
}

TEST(RetryBudget, RefusesParametersThatMakeNoSense) {  // B-8
  const auto make = [](double share, int min, std::chrono::milliseconds ttl) {
    RetryBudget budget(share, min, ttl, kStart);
  };
  EXPECT_THROW(make(0.2, 10, 999ms), std::invalid_argument);
  EXPECT_THROW(make(0.2, 10, 60'001ms), std::invalid_argument);
  EXPECT_THROW(make(0.2, -1, 10s), std::invalid_argument);
  EXPECT_THROW(make(-0.1, 10, 10s), std::invalid_argument);
  EXPECT_THROW(make(1000.1, 10, 10s), std::invalid_argument);
  EXPECT_THROW(make(std::numeric_limits<double>::quiet_NaN(), 10, 10s), std::invalid_argument);
  EXPECT_NO_THROW(make(0.2, 10, 1s));
  EXPECT_NO_THROW(make(1000, 1'000'000, 60s));
}

TEST(RetryBudget, AnUpstreamThatAlwaysFailsIsAskedTheShareMoreOften) {  // B-9
  RetryBudget budget(0.1, 0, 10s, kStart);
  int attempts = 0;
  constexpr int kFirstTries = 30'000;  // 1000 per second
  for (int i = 0; i < kFirstTries; ++i) {
    const SteadyTime now = kStart + i * 1ms;
    budget.on_first_try(now);
    ++attempts;
    for (int retry = 0; retry < 2 && budget.try_retry(now); ++retry) ++attempts;
  }
  EXPECT_NEAR(static_cast<double>(attempts) / kFirstTries, 1.1, 0.005);
}

}  // namespace
}  // namespace weir
