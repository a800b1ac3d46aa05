#include "proxy/attempt/retry_state.h"

#include <gtest/gtest.h>

#include <random>

namespace weir {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

RetryPolicy policy(int attempts, StatusCode code, BackoffOptions backoff = {100s, 700s, 2}) {
  RetryPolicy policy{attempts, backoff, {}};
  policy.retryable.add(code);
  return policy;
}

AttemptEnd ended(StatusCode code) { return {{code, 0}, {}}; }
AttemptEnd pushed_back(StatusCode code, milliseconds delay) {
  return {{code, 0}, {Pushback::Kind::delay, delay}};
}
AttemptEnd stopped(StatusCode code) { return {{code, 0}, {Pushback::Kind::stop}}; }
AttemptEnd committed(StatusCode code) { return {{code, 0}, {}, AttemptEnd::Answer::committed}; }

TEST(RetryState, CallsEndAsTheServersScriptHasIt) {  // G-1
  const RetryPolicy retried = policy(4, StatusCode::already_exists);
  const auto server = [](int index) {
    if (index == 0 || index == 2 || index == 5) return StatusCode::ok;
    if (index == 6 || index == 8 || index == 11) return StatusCode::internal;
    return StatusCode::already_exists;
  };
  int index = 0;
  std::vector<std::pair<StatusCode, int>> ends;
  for (int call = 0; call < 7; ++call) {
    RetryState state(&retried, nullptr);
    while (state.attempt_ended(ended(server(index)), 0.5).retry_in) ++index;
    ends.emplace_back(server(index), index);
    ++index;
  }
  using enum StatusCode;
  EXPECT_EQ(ends, (std::vector<std::pair<StatusCode, int>>{{ok, 0},
                                                           {ok, 2},
                                                           {ok, 5},
                                                           {internal, 6},
                                                           {internal, 8},
                                                           {internal, 11},
                                                           {already_exists, 15}}));
}

TEST(RetryState, APushbackIsWaitedForExactlyAndBeginsTheBackoffAnew) {  // G-8
  const RetryPolicy retried = policy(6, StatusCode::unavailable);
  RetryState state(&retried, nullptr);
  const auto unavailable = StatusCode::unavailable;
  EXPECT_EQ(state.attempt_ended(pushed_back(unavailable, 123ms), 0.9).retry_in, 123ms);
  EXPECT_EQ(state.attempt_ended(pushed_back(unavailable, 4567000ms), 0.9).retry_in, 4567000ms);
  EXPECT_EQ(state.attempt_ended(ended(unavailable), 0.5).retry_in, 100s);
  EXPECT_EQ(state.attempt_ended(ended(unavailable), 0.5).retry_in, 200s);
  EXPECT_EQ(state.attempt_ended(ended(unavailable), 0.5).retry_in, 400s);
  const auto last = state.attempt_ended(pushed_back(unavailable, 1ms), 0.5);
  EXPECT_EQ(last.retry_in, std::nullopt);
  EXPECT_EQ(last.refusal, RetryRefusal::attempts);
}

TEST(RetryState, EachAttemptKnowsHowManyCameBefore) {  // G-11
  const RetryPolicy retried = policy(5, StatusCode::unavailable);
  RetryState state(&retried, nullptr);
  for (int previous = 0; previous < 4; ++previous) {
    EXPECT_EQ(state.previous_attempts(), previous);
    EXPECT_TRUE(state.attempt_ended(ended(StatusCode::unavailable), 0.5).retry_in);
  }
}

TEST(RetryState, CommittedRequestsNeverRetry) {  // G-12
  const RetryPolicy retried = policy(5, StatusCode::unavailable);
  RetryState state(&retried, nullptr);
  const auto decision = state.attempt_ended(committed(StatusCode::unavailable), 0.5);
  EXPECT_FALSE(decision.retry_in);
  EXPECT_EQ(decision.refusal, RetryRefusal::committed);
}

TEST(RetryState, WithoutAPolicyNothingIsRetried) {  // G-14
  RetryThrottle throttle({4000, 1000});
  RetryState state(nullptr, &throttle);
  EXPECT_FALSE(state.attempt_ended(ended(StatusCode::unavailable), 0.5).retry_in);
  EXPECT_EQ(throttle.milli(), 4000);
}

TEST(RetryState, ACodeThatIsNotListedIsNotRetriedEvenWithAPushback) {
  const RetryPolicy retried = policy(5, StatusCode::unavailable);
  RetryThrottle throttle({4000, 1000});
  RetryState state(&retried, &throttle);
  EXPECT_FALSE(state.attempt_ended(pushed_back(StatusCode::internal, 0ms), 0.5).retry_in);
  EXPECT_EQ(throttle.milli(), 4000);
}

TEST(RetryState, ARefusalToBeRetriedCostsATokenWhateverTheCode) {
  const RetryPolicy retried = policy(5, StatusCode::unavailable);
  RetryThrottle throttle({4000, 1000});
  EXPECT_EQ(RetryState(&retried, &throttle).attempt_ended(stopped(StatusCode::internal), 0).refusal,
            RetryRefusal::pushback);
  EXPECT_EQ(throttle.milli(), 3000);
}

TEST(RetryState, TheThrottleIsAskedBeforeTheAttemptsLeftAre) {
  const RetryPolicy retried = policy(2, StatusCode::aborted);
  RetryThrottle throttle({10'000, 1000});
  RetryState state(&retried, &throttle);
  EXPECT_TRUE(state.attempt_ended(ended(StatusCode::aborted), 0.5).retry_in);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::aborted), 0.5).refusal, RetryRefusal::attempts);
  EXPECT_EQ(throttle.milli(), 8000) << "the last attempt costs a token too";
}

TEST(RetryState, AThrottledCallIsNotRetried) {  // G-6
  const RetryPolicy retried = policy(5, StatusCode::aborted);
  RetryThrottle throttle({2000, 1000});
  RetryState state(&retried, &throttle);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::aborted), 0.5).refusal, RetryRefusal::throttle);
}

TEST(RetryState, ASuccessIsCreditedWithAndWithoutAPolicy) {
  const RetryPolicy retried = policy(5, StatusCode::aborted);
  RetryThrottle throttle({4000, 1000});
  throttle.failure();
  throttle.failure();
  RetryState(&retried, &throttle).attempt_ended(ended(StatusCode::ok), 0.5);
  EXPECT_EQ(throttle.milli(), 3000);
  RetryState(nullptr, &throttle).attempt_ended(ended(StatusCode::ok), 0.5);
  EXPECT_EQ(throttle.milli(), 4000);
}

TEST(RetryState, AnAttemptThatTimedOutIsRetriedWhateverTheCodes) {
  const RetryPolicy retried = policy(3, StatusCode::aborted);
  RetryState state(&retried, nullptr);
  AttemptEnd end = ended(StatusCode::deadline_exceeded);
  EXPECT_FALSE(state.attempt_ended(end, 0.5).retry_in);
  end.timed_out = true;
  EXPECT_TRUE(state.attempt_ended(end, 0.5).retry_in);
}

TEST(TransparentRetries, AServerThatWasReachedIsAskedAgainOnce) {  // G-13
  using Reached = TransparentRetries::Reached;
  TransparentRetries retries;
  EXPECT_TRUE(retries.allow(Reached::server, 0));
  EXPECT_FALSE(retries.allow(Reached::server, 0));
  EXPECT_FALSE(TransparentRetries{}.allow(Reached::server, 1)) << "behind a retry by policy";
}

TEST(TransparentRetries, WhatWasNeverSentIsSentAgainUpToAThousandTimes) {  // G-13
  TransparentRetries retries;
  int times = 0;
  while (retries.allow(TransparentRetries::Reached::nothing, 2)) ++times;
  EXPECT_EQ(times, 1000);
}

TEST(RetryState, NeverExceedsItsPolicyWhateverHappens) {  // G-23
  std::mt19937_64 engine(5);
  const auto below = [&](std::uint64_t bound) { return engine() % bound; };
  for (int round = 0; round < 20'000; ++round) {
    RetryPolicy retried = policy(2 + static_cast<int>(below(4)), StatusCode::unavailable,
                                 {milliseconds{1 + below(5000)}, milliseconds{1 + below(5000)},
                                  0.1 + static_cast<double>(below(40)) / 10});
    RetryThrottle throttle({1 + static_cast<int>(below(10'000)), 100});
    const bool has_policy = below(8) > 0;
    RetryState state(has_policy ? &retried : nullptr, below(2) ? &throttle : nullptr);
    int attempts = 0;
    for (;;) {
      ++attempts;
      AttemptEnd end = ended(static_cast<StatusCode>(below(2) ? 14 : below(17)));
      end.pushback.kind = static_cast<Pushback::Kind>(below(8) ? below(2) : 2);
      if (end.pushback.kind == Pushback::Kind::delay)
        end.pushback.delay = milliseconds{below(9000)};
      if (below(10) == 0) end.answer = AttemptEnd::Answer::committed;
      const double random = static_cast<double>(below(1000)) / 1000;
      const auto retry_in = state.attempt_ended(end, random).retry_in;
      if (!retry_in) break;
      ASSERT_TRUE(has_policy);
      ASSERT_EQ(end.outcome.code, StatusCode::unavailable);
      ASSERT_NE(end.answer, AttemptEnd::Answer::committed);
      ASSERT_NE(end.pushback.kind, Pushback::Kind::stop);
      ASSERT_GE(*retry_in, 0ms);
      ASSERT_LE(*retry_in, std::max<std::chrono::nanoseconds>(retried.backoff.max * 12 / 10,
                                                              end.pushback.delay));
      ASSERT_LT(attempts, retried.max_attempts);
    }
  }
}

}  // namespace
}  // namespace weir
