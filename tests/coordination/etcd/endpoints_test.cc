#include "coordination/etcd/endpoints.h"

#include <gtest/gtest.h>

namespace weir::etcd {
namespace {

using namespace std::chrono_literals;

constexpr SteadyTime kStart{1'000s};
constexpr std::uint64_t kMost = ~0ULL;

// The wait that `random` gives after the member's next failure.
SteadyTime::duration wait_after_failure(Endpoints& endpoints, std::uint64_t random) {
  endpoints.failed(0, kStart, random);
  return endpoints.next_try() - kStart;
}

TEST(Endpoints, TheFirstIsUsedAndStays) {
  Endpoints endpoints(3, 1);
  EXPECT_EQ(endpoints.choose(kStart), 1U);
  endpoints.answered(1, kStart);
  EXPECT_EQ(endpoints.choose(kStart + 1h), 1U);
}

TEST(Endpoints, OneThatFailedIsLeftForTheNext) {
  Endpoints endpoints(3, 2);
  endpoints.failed(2, kStart, 0);
  EXPECT_EQ(endpoints.choose(kStart), 0U);
  endpoints.failed(0, kStart, 0);
  EXPECT_EQ(endpoints.choose(kStart), 1U);
}

TEST(Endpoints, WhenAllHaveFailedNoneIsTriedBeforeItsTime) {
  Endpoints endpoints(2, 0);
  endpoints.failed(0, kStart, 50);
  endpoints.failed(1, kStart + 5ms, 0);
  EXPECT_EQ(endpoints.choose(kStart + 5ms), std::nullopt);
  EXPECT_EQ(endpoints.next_try(), kStart + 55ms);
  EXPECT_EQ(endpoints.choose(endpoints.next_try()), 1U);
  EXPECT_EQ(endpoints.choose(endpoints.next_try() - 1ms), std::nullopt);
}

TEST(Endpoints, OneThatIsGoodIsNotLeftForOneThatIsBack) {
  Endpoints endpoints(2, 0);
  endpoints.failed(0, kStart, 0);
  endpoints.answered(1, kStart);
  EXPECT_EQ(endpoints.choose(kStart + 1h), 1U);
  endpoints.failed(1, kStart + 1h, 0);
  EXPECT_EQ(endpoints.choose(kStart + 1h), 0U) << "its time has come long ago";
}

TEST(Endpoints, DelaysDoubleUpToTheLongest) {
  Endpoints endpoints(1, 0);
  std::vector<SteadyTime::duration> waits;
  for (int i = 0; i < 7; ++i) waits.push_back(wait_after_failure(endpoints, 0));
  EXPECT_EQ(waits, (std::vector<SteadyTime::duration>{50ms, 100ms, 200ms, 400ms, 800ms, 1s, 1s}));
  for (int i = 0; i < 100; ++i) wait_after_failure(endpoints, 0);
  EXPECT_EQ(wait_after_failure(endpoints, 0), 1s);
}

TEST(Endpoints, HalfOfADelayIsRandom) {
  for (const std::uint64_t random : {0ULL, 17ULL, 50ULL}) {
    Endpoints endpoints(1, 0);
    EXPECT_EQ(wait_after_failure(endpoints, random), 50ms + random * 1ms);
  }
  Endpoints endpoints(1, 0);
  EXPECT_LE(wait_after_failure(endpoints, kMost), Endpoints::kFirstDelay);
}

TEST(Endpoints, AnAnswerEndsTheRowOfFailures) {
  Endpoints endpoints(1, 0);
  for (int i = 0; i < 5; ++i) wait_after_failure(endpoints, 0);
  endpoints.answered(0, kStart);
  EXPECT_EQ(endpoints.choose(kStart), 0U);
  EXPECT_EQ(wait_after_failure(endpoints, 0), 50ms);
}

TEST(Endpoints, OneThatAnsweredNothingSinceACallThatTimedOutIsStuck) {
  Endpoints endpoints(2, 0);
  endpoints.answered(0, kStart);
  EXPECT_TRUE(endpoints.timed_out(0, kStart + 1ms, kStart + 1s, 0));
  EXPECT_EQ(endpoints.choose(kStart + 1s), 1U);
}

TEST(Endpoints, OneSlowCallAmongOthersIsNoReasonToLeave) {
  Endpoints endpoints(2, 0);
  endpoints.answered(0, kStart + 500ms);
  EXPECT_FALSE(endpoints.timed_out(0, kStart, kStart + 1s, 0));
  EXPECT_EQ(endpoints.choose(kStart + 1s), 0U);
}

TEST(Endpoints, OneOfARefusedVersionIsNotTriedForLong) {
  Endpoints endpoints(2, 0);
  endpoints.refused(0, kStart);
  EXPECT_EQ(endpoints.choose(kStart), 1U);
  endpoints.failed(1, kStart, 0);
  EXPECT_EQ(endpoints.choose(kStart + 10s), 1U);
  endpoints.failed(1, kStart + 30s, 0);
  EXPECT_EQ(endpoints.choose(kStart + 30s), 0U);
}

}  // namespace
}  // namespace weir::etcd
