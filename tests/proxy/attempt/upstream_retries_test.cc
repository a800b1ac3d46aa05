#include "proxy/attempt/upstream_retries.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr SteadyTime kNow{std::chrono::seconds{100}};

UpstreamOptions options(const std::string& names, const std::string& more = "") {
  UpstreamOptions options;
  options.service_config = R"({"methodConfig": [{"name": [)" + names +
                           R"(], "timeout": "5s", "retryPolicy": {"maxAttempts": 3,
      "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1,
      "retryableStatusCodes": ["UNAVAILABLE"]}}])" +
                           more + "}";
  return options;
}
constexpr const char* kThrottled = R"(, "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1})";
constexpr const char* kThrottledMore =
    R"(, "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1})";

TEST(UpstreamRetries, WithoutAServiceConfigThereAreNone) {
  EXPECT_EQ(UpstreamRetries::make({}, nullptr, kNow), nullptr);
}

TEST(UpstreamRetries, OnlyIdempotentRequestsAreRetriedByDefault) {
  const auto retries = UpstreamRetries::make(options("{}"), nullptr, kNow);
  for (auto method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"}) {
    EXPECT_NE(retries->policy_for(method, "/x").retry, nullptr) << method;
  }
  for (auto method : {"POST", "PATCH", "PROPFIND"}) {
    EXPECT_EQ(retries->policy_for(method, "/x").retry, nullptr) << method;
    EXPECT_TRUE(retries->policy_for(method, "/x").timeout) << "which holds all the same";
  }
}

TEST(UpstreamRetries, APolicyThatNamesAPathIsForEveryMethod) {
  const auto retries =
      UpstreamRetries::make(options(R"({"path": "/a/**"}, {"service": "s"})"), nullptr, kNow);
  EXPECT_NE(retries->policy_for("POST", "/a/b").retry, nullptr);
  EXPECT_NE(retries->policy_for("POST", "/s/Method").retry, nullptr);
  EXPECT_EQ(retries->policy_for("GET", "/b").retry, nullptr);
}

TEST(UpstreamRetries, TurnedOffNothingIsRetriedButTimeoutsStay) {  // G-14
  UpstreamOptions off = options("{}");
  off.retries = false;
  const auto retries = UpstreamRetries::make(off, nullptr, kNow);
  EXPECT_EQ(retries->policy_for("GET", "/x").retry, nullptr);
  EXPECT_TRUE(retries->policy_for("GET", "/x").timeout);
}

TEST(UpstreamRetries, TokensAndBudgetOutliveAReload) {
  const auto old = UpstreamRetries::make(options("{}", kThrottled), nullptr, kNow);
  old->throttle()->failure();
  while (old->pay(kNow)) {
  }
  const auto same = UpstreamRetries::make(options("{}", kThrottled), old.get(), kNow);
  EXPECT_EQ(same->throttle(), old->throttle());
  EXPECT_FALSE(same->pay(kNow)) << "a reload brings no fresh budget";
  const auto changed = UpstreamRetries::make(options("{}", kThrottledMore), same.get(), kNow);
  EXPECT_EQ(changed->throttle()->milli(), 90'000);
  EXPECT_EQ(old->throttle()->milli(), 90'000);
}

TEST(UpstreamRetries, WhereTheDynamicBucketIsEnabledBothItAndTheBudgetPay) {
  UpstreamOptions bucketed = options("{}");
  bucketed.dynamic_bucket.enabled = true;
  const auto retries = UpstreamRetries::make(bucketed, nullptr, kNow);
  for (int i = 0; i < 40; ++i) retries->on_first_try(kNow);
  const auto affordable = retries->view(kNow).affordable;
  EXPECT_TRUE(retries->pay(kNow));
  EXPECT_TRUE(retries->pay(kNow));
  EXPECT_FALSE(retries->pay(kNow)) << "a twentieth of 40";
  EXPECT_EQ(retries->view(kNow).affordable, affordable - 2) << "what it refused cost no budget";
  bucketed.retry_budget = {0, 0, std::chrono::seconds{10}};
  const auto poor = UpstreamRetries::make(bucketed, nullptr, kNow);
  EXPECT_FALSE(poor->pay(kNow));
  EXPECT_EQ(poor->view(kNow).bucket->retries, 0) << "what the budget refused cost no token";
}

TEST(UpstreamRetries, WhatTheDynamicBucketLearnedOutlivesAReload) {
  UpstreamOptions bucketed = options("{}");
  bucketed.dynamic_bucket.enabled = true;
  const auto old = UpstreamRetries::make(bucketed, nullptr, kNow);
  old->on_first_try(kNow);
  old->on_end(Load::too_much, kNow);
  old->on_end(Load::unknown, kNow);
  const SteadyTime later = kNow + std::chrono::seconds{2};
  const auto same = UpstreamRetries::make(bucketed, old.get(), later);
  EXPECT_DOUBLE_EQ(same->view(later).bucket->rate, 70);
  same->on_first_try(later);
  EXPECT_EQ(old->view(later).bucket->first_tries, 1) << "both count in the same one";
  bucketed.dynamic_bucket.retry_share = 0.1;
  const auto changed = UpstreamRetries::make(bucketed, same.get(), later);
  EXPECT_DOUBLE_EQ(changed->view(later).bucket->rate, 70);
  bucketed.dynamic_bucket.enabled = false;
  EXPECT_FALSE(UpstreamRetries::make(bucketed, changed.get(), later)->view(later).bucket);
}

}  // namespace
}  // namespace weir
