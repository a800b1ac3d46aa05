#include "proxy/attempt/hedge_state.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Verdict = HedgeState::Verdict;

constexpr SteadyTime kStart{1000s};

HedgingPolicy policy(int attempts, milliseconds delay) {
  HedgingPolicy policy{attempts, delay, {}};
  policy.non_fatal.add(StatusCode::unavailable);
  return policy;
}
AttemptEnd ended(StatusCode code) { return {{code, 0}, {}}; }

// Sends whatever is due by then.
int sent_by(HedgeState& state, milliseconds at) {
  while (state.next() && *state.next() <= kStart + at) state.sent(*state.next());
  return state.sent();
}

TEST(HedgeState, SendsTheNextEachDelay) {  // G-16
  const HedgingPolicy hedged = policy(4, 500ms);
  HedgeState state(hedged, nullptr);
  state.sent(kStart);
  EXPECT_EQ(sent_by(state, 1ms), 1);
  EXPECT_EQ(sent_by(state, 501ms), 2);
  EXPECT_EQ(sent_by(state, 1001ms), 3);
  EXPECT_EQ(sent_by(state, 1501ms), 4);
  EXPECT_EQ(sent_by(state, 60'000ms), 4);
  EXPECT_EQ(state.active(), 4);
}

TEST(HedgeState, WithoutADelayAllAreSentAtOnce) {  // G-16
  const HedgingPolicy hedged = policy(4, 0ms);
  HedgeState state(hedged, nullptr);
  state.sent(kStart);
  EXPECT_EQ(sent_by(state, 0ms), 4);
}

TEST(HedgeState, ANonFatalAnswerSendsTheNextAtOnceAndRestartsTheDelay) {  // G-17
  const HedgingPolicy hedged = policy(4, 500ms);
  HedgeState state(hedged, nullptr);
  state.sent(kStart);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::unavailable), kStart + 200ms), Verdict::wait);
  EXPECT_EQ(sent_by(state, 200ms), 2);
  EXPECT_EQ(sent_by(state, 699ms), 2);
  EXPECT_EQ(sent_by(state, 700ms), 3);
}

TEST(HedgeState, APushbackSetsTheTimeOfTheNext) {
  const HedgingPolicy hedged = policy(4, 500ms);
  HedgeState state(hedged, nullptr);
  state.sent(kStart);
  AttemptEnd end = ended(StatusCode::unavailable);
  end.pushback = {Pushback::Kind::delay, 2000ms};
  EXPECT_EQ(state.attempt_ended(end, kStart + 100ms), Verdict::wait);
  EXPECT_EQ(sent_by(state, 2099ms), 1);
  EXPECT_EQ(sent_by(state, 2100ms), 2);
  EXPECT_EQ(sent_by(state, 2599ms), 2);
  EXPECT_EQ(sent_by(state, 2600ms), 3);
}

TEST(HedgeState, APushbackThatForbidsMoreWaitsForTheActiveOnes) {  // G-18
  const HedgingPolicy hedged = policy(4, 500ms);
  HedgeState state(hedged, nullptr);
  state.sent(kStart);
  EXPECT_EQ(sent_by(state, 500ms), 2);
  AttemptEnd end = ended(StatusCode::unavailable);
  end.pushback.kind = Pushback::Kind::stop;
  EXPECT_EQ(state.attempt_ended(end, kStart + 600ms), Verdict::wait);
  EXPECT_EQ(sent_by(state, 60'000ms), 2);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::ok), kStart + 900ms), Verdict::take);
}

TEST(HedgeState, WhenAllFailedTheLastErrorIsTaken) {  // G-19
  const HedgingPolicy hedged = policy(3, 0ms);
  HedgeState state(hedged, nullptr);
  state.sent(kStart);
  EXPECT_EQ(sent_by(state, 0ms), 3);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::unavailable), kStart), Verdict::wait);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::unavailable), kStart), Verdict::wait);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::unavailable), kStart), Verdict::take);
}

TEST(HedgeState, AFatalCodeIsTakenWhateverElseIsUnderWay) {  // G-20
  const HedgingPolicy hedged = policy(3, 0ms);
  RetryThrottle throttle({4000, 800});
  HedgeState state(hedged, &throttle);
  state.sent(kStart);
  sent_by(state, 0ms);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::internal), kStart), Verdict::take);
  EXPECT_EQ(state.active(), 2);
  EXPECT_EQ(throttle.milli(), 4000);
}

TEST(HedgeState, ACallWhoseOwnHedgesEmptyTheThrottleEnds) {  // G-21
  const HedgingPolicy hedged = policy(4, 500ms);
  RetryThrottle throttle({4000, 800});
  HedgeState state(hedged, &throttle);
  state.sent(kStart);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::unavailable), kStart + 100ms), Verdict::wait);
  EXPECT_EQ(sent_by(state, 100ms), 2);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::unavailable), kStart + 200ms), Verdict::take);
  EXPECT_EQ(sent_by(state, 60'000ms), 2) << "the third is never sent";
}

TEST(HedgeState, TheThrottleIsAskedAgainWhenTheTimeHasCome) {
  const HedgingPolicy hedged = policy(4, 500ms);
  RetryThrottle throttle({4000, 800});
  HedgeState state(hedged, &throttle);
  state.sent(kStart);
  EXPECT_TRUE(state.next());
  throttle.failure();
  throttle.failure();  // by other calls
  EXPECT_FALSE(state.next());
  throttle.success();
  EXPECT_TRUE(state.next());
}

TEST(HedgeState, ACancelledAttemptIsNotWaitedFor) {
  const HedgingPolicy hedged = policy(3, 0ms);
  HedgeState state(hedged, nullptr);
  state.sent(kStart);
  sent_by(state, 0ms);
  state.freeze();
  state.cancelled();
  state.cancelled();
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::unavailable), kStart), Verdict::take);
}

TEST(HedgeState, AFrozenCallSendsNoMore) {
  const HedgingPolicy hedged = policy(4, 500ms);
  HedgeState state(hedged, nullptr);
  state.sent(kStart);
  state.freeze();
  EXPECT_EQ(sent_by(state, 60'000ms), 1);
  EXPECT_EQ(state.attempt_ended(ended(StatusCode::unavailable), kStart), Verdict::take);
}

}  // namespace
}  // namespace weir
