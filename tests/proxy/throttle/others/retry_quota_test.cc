#include "tests/proxy/throttle/others/retry_quota.h"

#include <gtest/gtest.h>

namespace weir::test {
namespace {

TEST(RetryQuota, AHundredRetriesAndThenNoneUntilFirstTriesSucceed) {
  RetryQuota quota;
  int retries = 0;
  for (int i = 0; i < 1000; ++i) retries += quota.take(RetryQuota::kRetry);
  EXPECT_EQ(retries, 100);
  for (int i = 1; i <= 500; ++i) {
    quota.success(0);
    EXPECT_EQ(quota.tokens(), i);
  }
  quota.success(0);
  EXPECT_EQ(quota.tokens(), 500);
}

TEST(RetryQuota, ASuccessfulRetryGivesBackWhatItTook) {
  RetryQuota quota;
  EXPECT_TRUE(quota.take(RetryQuota::kRetryOfTimeout));
  EXPECT_TRUE(quota.take(RetryQuota::kRetry));
  quota.success(RetryQuota::kRetryOfTimeout);
  EXPECT_EQ(quota.tokens(), 495);
  quota.success(RetryQuota::kRetryOfTimeout);
  EXPECT_EQ(quota.tokens(), 500);
}

TEST(RetryQuota, BackoffDoublesUpToTwentySeconds) {
  EXPECT_EQ(RetryQuota::backoff(0, 0.5), 0.5);
  EXPECT_EQ(RetryQuota::backoff(4, 0.5), 8);
  EXPECT_EQ(RetryQuota::backoff(5, 0.5), 10);
  EXPECT_EQ(RetryQuota::backoff(50, 0.5), 10);
}

}  // namespace
}  // namespace weir::test
