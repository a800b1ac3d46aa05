#include "proxy/attempt/dynamic_bucket.h"

#include <gtest/gtest.h>

#include <queue>
#include <random>

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr SteadyTime kStart{1234567ms};
constexpr auto kWindow = 2s;

// A rate that is never in the way, so that the share alone decides.
DynamicBucket plenty() { return DynamicBucket({.rate = 1e6, .burst = 1s}, kStart); }

int granted(DynamicBucket& bucket, SteadyTime now, int asked) {
  int granted = 0;
  for (int i = 0; i < asked; ++i) granted += bucket.try_retry(now) ? 1 : 0;
  return granted;
}

double rate_after(DynamicBucket& bucket, std::chrono::milliseconds at) {
  return bucket.view(kStart + at).rate;
}

TEST(DynamicBucket, RetriesGetTheirShareOfTheFirstTriesOfTheLastWindow) {
  DynamicBucket bucket = plenty();
  for (int i = 0; i < 200; ++i) bucket.on_first_try(kStart);
  EXPECT_EQ(granted(bucket, kStart, 100), 10);
  EXPECT_EQ(granted(bucket, kStart + 1999ms, 100), 0) << "all of that is within the last window";
  for (int i = 0; i < 400; ++i) bucket.on_first_try(kStart + 1999ms);
  EXPECT_EQ(granted(bucket, kStart + 1999ms, 100), 20);
  EXPECT_EQ(granted(bucket, kStart + kWindow, 100), 0) << "20 of 400 were granted in the window";
}

TEST(DynamicBucket, WithFewFirstTriesOneRetryAWindowIsGranted) {
  DynamicBucket bucket = plenty();
  bucket.on_first_try(kStart);
  EXPECT_EQ(granted(bucket, kStart, 5), 1);
  EXPECT_EQ(granted(bucket, kStart + 1999ms, 5), 0);
  EXPECT_EQ(granted(bucket, kStart + kWindow, 5), 1);
}

TEST(DynamicBucket, FirstTriesTakeTokensButAreNeverHeldBackForWantOfThem) {
  DynamicBucket bucket({.rate = 10, .burst = 1s}, kStart);
  for (int i = 0; i < 1000; ++i) bucket.on_first_try(kStart);
  EXPECT_EQ(bucket.view(kStart).first_tries, 1000);
  EXPECT_FALSE(bucket.try_retry(kStart)) << "first tries have left no token";
  EXPECT_TRUE(bucket.try_retry(kStart + 100ms));
  EXPECT_FALSE(bucket.try_retry(kStart + 100ms));
}

TEST(DynamicBucket, TheNextTokenGoesToTheNextLiveClaimerNotToOneThatTimedOut) {  // B-10
  DynamicBucket bucket({.window = 10s, .retry_share = 1, .rate = 1, .floor = 1, .burst = 4s},
                       kStart);
  for (int i = 0; i < 4; ++i) bucket.on_first_try(kStart);
  // Nobody waits here: the most that patience can mean is to ask again, and that is not charged.
  for (auto asked_at = 0ms; asked_at <= 500ms; asked_at += 100ms) {
    EXPECT_FALSE(bucket.try_retry(kStart + asked_at));
  }
  EXPECT_TRUE(bucket.try_retry(kStart + 1s)) << "who asks now";
  EXPECT_FALSE(bucket.try_retry(kStart + 1s)) << "and nobody else";
  EXPECT_FALSE(bucket.try_retry(kStart + 1999ms));
  EXPECT_TRUE(bucket.try_retry(kStart + 2s));
}

TEST(DynamicBucket, WhomTheShareRefusesIsNotChargedAToken) {
  DynamicBucket bucket({.rate = 5, .burst = 1s}, kStart);
  EXPECT_EQ(granted(bucket, kStart, 50), 1) << "one in a window";
  EXPECT_EQ(bucket.view(kStart).tokens, 4);
}

TEST(DynamicBucket, TokensAreSavedUpForTheBurstOnly) {
  DynamicBucket bucket({.retry_share = 1, .rate = 10, .burst = 500ms}, kStart);
  EXPECT_EQ(bucket.view(kStart).tokens, 5);
  EXPECT_EQ(bucket.view(kStart + 1h).tokens, 5);
}

TEST(DynamicBucket, GrowsByATwentiethWhereItWasInTheWayAndNothingFailed) {
  DynamicBucket bucket({.rate = 100}, kStart);
  for (int i = 0; i < 51; ++i) bucket.on_first_try(kStart);
  bucket.on_success(kStart);
  EXPECT_EQ(rate_after(bucket, 1999ms), 100);
  EXPECT_EQ(rate_after(bucket, 2000ms), 105);
  EXPECT_EQ(rate_after(bucket, 60'000ms), 105) << "idle time teaches nothing";
}

TEST(DynamicBucket, GrowsByOneAtLeast) {
  DynamicBucket bucket({.rate = 6}, kStart);
  for (int i = 0; i < 10; ++i) bucket.on_first_try(kStart);
  bucket.on_success(kStart);
  EXPECT_EQ(rate_after(bucket, 2000ms), 7);
}

TEST(DynamicBucket, KeepsItsRateWhereItWasNotInTheWay) {
  DynamicBucket bucket({.rate = 100}, kStart);
  for (int i = 0; i < 50; ++i) bucket.on_first_try(kStart);
  bucket.on_success(kStart);
  EXPECT_EQ(rate_after(bucket, 2000ms), 100) << "there was a token for each";
}

TEST(DynamicBucket, KeepsItsRateWhereNothingSucceeded) {
  DynamicBucket bucket({.rate = 100}, kStart);
  for (int i = 0; i < 500; ++i) bucket.on_first_try(kStart);
  EXPECT_EQ(rate_after(bucket, 2000ms), 100);
}

TEST(DynamicBucket, OverloadTakesThreeTenthsOnceAWindowAndNeverMoreThanTheFloorAllows) {
  DynamicBucket bucket({.rate = 100, .floor = 40}, kStart);
  const double expected[] = {70, 49, 40, 40};
  for (int window = 0; window < 4; ++window) {
    const SteadyTime now = kStart + window * kWindow;
    for (int i = 0; i < 500; ++i) {
      bucket.on_first_try(now);
      bucket.on_success(now);
      bucket.on_overload(now);
    }
    EXPECT_NEAR(bucket.view(now + kWindow).rate, expected[window], 1e-9);
  }
}

TEST(DynamicBucket, ATimeThatLagsBehindChangesNothingThatWasCounted) {
  DynamicBucket bucket({.retry_share = 1, .rate = 10, .burst = 1s}, kStart);
  for (int i = 0; i < 9; ++i) bucket.on_first_try(kStart + 5s);
  EXPECT_TRUE(bucket.try_retry(kStart)) << "the token that is left";
  EXPECT_FALSE(bucket.try_retry(kStart));
  EXPECT_FALSE(bucket.try_retry(kStart + 5s)) << "no time has passed since";
  EXPECT_EQ(bucket.view(kStart).first_tries, 9);
}

// A service that serves so many per second and answers all others at once that it cannot. Who is
// told so asks the bucket, and tries again as often as it grants that.
class Overload {
 public:
  explicit Overload(double first_tries_per_second) : gap_(1 / first_tries_per_second) {}

  void run(double until, double capacity) {
    while (first_tries() * gap_ < until - gap_ / 2) {
      // One in each gap, somewhere: tokens come evenly, and must not always meet a first try.
      const double now = gap_ * (first_tries() + uniform(0.01, 0.99));
      end_attempts(now, capacity);
      bucket_.on_first_try(at(now));
      first_tries_.push_back(now);
      attempt(now, capacity);
    }
    end_attempts(until, capacity);
  }
  int first_tries(double from) const { return within(first_tries_, from); }
  int retries(double from) const { return within(retries_, from); }

 private:
  double first_tries() const { return static_cast<double>(first_tries_.size()); }
  double uniform(double from, double to) {
    return std::uniform_real_distribution<>(from, to)(engine_);
  }
  static SteadyTime at(double seconds) {
    return kStart +
           std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(seconds));
  }
  static int within(const std::vector<double>& times, double from) {
    return static_cast<int>(std::count_if(times.begin(), times.end(), [from](double time) {
      return time >= from && time < from + 2;
    }));
  }
  void attempt(double now, double capacity) {
    served_ = std::min(1.0, served_ + capacity * (now - seen_));
    seen_ = now;
    if (served_ >= 1) {
      served_ -= 1;
      bucket_.on_success(at(now));
    } else {
      failing_.push(now + uniform(0.002, 0.02));
    }
  }
  void end_attempts(double until, double capacity) {
    while (!failing_.empty() && failing_.top() < until) {
      const double now = failing_.top();
      failing_.pop();
      bucket_.on_overload(at(now));
      if (!bucket_.try_retry(at(now))) continue;
      retries_.push_back(now);
      attempt(now, capacity);
    }
  }

  const double gap_;
  std::mt19937_64 engine_{7};
  DynamicBucket bucket_{{}, kStart};
  double seen_ = 0, served_ = 1;
  std::priority_queue<double, std::vector<double>, std::greater<>> failing_;
  std::vector<double> first_tries_, retries_;
};

TEST(DynamicBucket, UnderOverloadRetriesKeepToTheirShareAndFallWithTheCapacity) {  // B-12
  Overload service(300);
  constexpr double kDrop = 8, kEnd = 30;
  service.run(kDrop, 100);
  service.run(kEnd, 30);
  for (double from = 0; from + 2 <= kEnd; from += 0.2) {  // in every window, wherever it begins
    EXPECT_LE(service.retries(from), std::max(1.0, 0.05 * service.first_tries(from))) << from;
  }
  EXPECT_GT(service.retries(kDrop - 2), 10) << "there is something to fall";
  EXPECT_LT(service.retries(kDrop + 2), 0.8 * service.retries(kDrop - 2)) << "the second window";
}

}  // namespace
}  // namespace weir
