#include "coordination/claim_size.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(ClaimSize, IsWhatTheLineNeedsOfWhatIsLeft) {
  EXPECT_EQ(claim_size({.limit = 100, .used = 40, .waiting = 7}), 7);
  EXPECT_EQ(claim_size({.limit = 100, .used = 98, .waiting = 7}), 2);
  EXPECT_EQ(claim_size({.limit = 100, .used = 100, .waiting = 7}), 0);
  EXPECT_EQ(claim_size({.limit = 100, .used = 130, .waiting = 7}), 0) << "a limit was lowered";
  EXPECT_EQ(claim_size({.limit = 100, .used = 0, .waiting = 7, .in_hand = 7}), 0);
  EXPECT_EQ(claim_size({.limit = 100, .used = 0}), 0);
}

TEST(ClaimSize, IsAFairShareWhereOthersHaveClaimsToo) {
  EXPECT_EQ(claim_size({.limit = 100, .used = 40, .waiting = 60, .live_replicas = 3}), 60);
  EXPECT_EQ(
      claim_size({.limit = 100, .used = 40, .waiting = 60, .live_replicas = 3, .contested = true}),
      20);
  EXPECT_EQ(
      claim_size({.limit = 100, .used = 98, .waiting = 60, .live_replicas = 3, .contested = true}),
      1)
      << "at least one, or the last units would be nobody's";
}

TEST(ClaimSize, AheadIsWhatTwoTransactionsTake) {
  const ClaimFacts steady{.limit = 100, .in_hand = 2, .rate = 50, .txn_time = 40ms};
  EXPECT_EQ(low_water(steady), 4);
  EXPECT_EQ(claim_size(steady), 2);
}

TEST(ClaimSize, AheadIsNeverMoreThanTheRateWillUseBeforeTheWindowEnds) {
  EXPECT_EQ(
      claim_size({.limit = 100, .in_hand = 0, .rate = 50, .txn_time = 1s, .window_left = 100ms}),
      5);
  EXPECT_EQ(claim_size({.limit = 6000, .waiting = 1, .rate = 10, .window_left = 300ms}), 1 + 3);
}

TEST(ClaimSize, AheadIsNeverMoreThanAFairShare) {
  EXPECT_EQ(claim_size({.limit = 90, .rate = 1000, .txn_time = 1s, .live_replicas = 3}), 30);
}

TEST(ClaimSize, ALargeLimitIsClaimedInAtMostAHundredAndTwentyEightParts) {
  EXPECT_EQ(claim_quantum(128), 1);
  EXPECT_EQ(claim_quantum(129), 2);
  EXPECT_EQ(claim_quantum(6000), 47);
  EXPECT_EQ(claim_size({.limit = 6000, .in_hand = 0, .rate = 100}), 47);
  EXPECT_EQ(claim_size({.limit = 6000, .waiting = 1, .in_hand = 0, .rate = 100}), 1 + 47);
}

TEST(ClaimSize, ResourcesAskedForNowAndThenGetNothingAhead) {
  EXPECT_EQ(low_water({.limit = 6000, .rate = 0.5, .txn_time = 2ms}), -1);
  EXPECT_EQ(low_water({.limit = 100, .rate = 100, .txn_time = 2ms}), -1);
  EXPECT_EQ(claim_size({.limit = 6000, .waiting = 1}), 1);
}

TEST(ClaimSize, ClaimsOfABurstGrowWithWhatItHasUsed) {
  std::int64_t used = 0;
  int claims = 0;
  while (used < 100'000) {
    used += claim_size({.limit = 100'000, .used = used, .waiting = 1, .held = used});
    ++claims;
  }
  EXPECT_LE(claims, 256);
}

}  // namespace
}  // namespace weir
