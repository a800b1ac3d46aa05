#include "proxy/attempt/backoff.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(Backoff, GrowsByTheMultiplierUpToTheMaximum) {  // G-7
  Backoff backoff({100s, 700s, 2});
  for (auto expected : {100s, 200s, 400s, 700s, 700s}) EXPECT_EQ(backoff.next(0.5), expected);
}

TEST(Backoff, IsSpreadByAFifthEitherWayEvenBeyondTheMaximum) {  // G-7
  for (double random : {0.0, 0.25, 0.9999}) {
    Backoff backoff({100s, 700s, 2});
    for (auto middle : {100s, 200s, 400s, 700s, 700s}) {
      const nanoseconds delay = backoff.next(random);
      EXPECT_GE(delay, middle * 8 / 10);
      EXPECT_LE(delay, middle * 12 / 10);
    }
  }
  Backoff backoff({100s, 700s, 10});
  backoff.next(0.9);
  EXPECT_GT(backoff.next(0.9), 700s);
}

TEST(Backoff, AnInitialDelayAboveTheMaximumIsClamped) {
  EXPECT_EQ(Backoff({100s, 5s, 2}).next(0.5), 5s);
}

TEST(Backoff, AMultiplierBelowOneShortensIt) {
  Backoff backoff({8s, 100s, 0.5});
  for (auto expected : {8s, 4s, 2s}) EXPECT_EQ(backoff.next(0.5), expected);
}

TEST(Backoff, BeginsAnewAfterAReset) {
  Backoff backoff({100s, 700s, 2});
  backoff.next(0.5);
  backoff.next(0.5);
  backoff.reset();
  EXPECT_EQ(backoff.next(0.5), 100s);
}

TEST(Backoff, FullJitterIsFromNothingToTheWholeDelay) {
  Backoff backoff({100s, 700s, 2, Jitter::full});
  EXPECT_EQ(backoff.next(0), 0s);
  EXPECT_EQ(backoff.next(0.5), 100s);
  EXPECT_EQ(backoff.next(0.25), 100s);
}

TEST(Backoff, DecorrelatedJitterNeverFallsBelowItsBase) {  // B-11
  for (double random : {0.0, 0.3, 0.999}) {
    Backoff backoff({10ms, 2s, 1, Jitter::decorrelated});
    for (int i = 0; i < 20; ++i) {
      const nanoseconds delay = backoff.next(random);
      EXPECT_GE(delay, 10ms);
      EXPECT_LE(delay, 2s);
    }
  }
  Backoff backoff({10ms, 2s, 1, Jitter::decorrelated});
  EXPECT_EQ(backoff.next(0.5), 20ms);
  EXPECT_EQ(backoff.next(0.5), 35ms);
}

TEST(Backoff, HoweverOftenItIsAskedItStaysFinite) {
  Backoff backoff({1s, 300'000'000s, 1e9});
  for (int i = 0; i < 1000; ++i) EXPECT_LE(backoff.next(0.999), 360'000'000s);
}

}  // namespace
}  // namespace weir
