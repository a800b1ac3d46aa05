#include "proxy/attempt/retry_state.h"

#include <utility>

namespace weir {

RetryDecision RetryState::attempt_ended(const AttemptEnd& end, double random) {
  if (end.outcome.code == StatusCode::ok) {
    if (throttle_) throttle_->success();
    return {};
  }
  if (!policy_) return {};
  if (end.pushback.kind == Pushback::Kind::stop) {
    if (throttle_) throttle_->failure();
    return {std::nullopt, RetryRefusal::pushback};
  }
  if (!end.timed_out && !policy_->retryable.contains(end.outcome)) return {};
  if (throttle_ && !throttle_->failure()) return {std::nullopt, RetryRefusal::throttle};
  if (end.answer == AttemptEnd::Answer::committed) return {std::nullopt, RetryRefusal::committed};
  if (++attempts_ >= policy_->max_attempts) return {std::nullopt, RetryRefusal::attempts};
  if (end.pushback.kind == Pushback::Kind::delay) {
    backoff_.reset();
    return {end.pushback.delay, RetryRefusal::none};
  }
  return {backoff_.next(random), RetryRefusal::none};
}

bool TransparentRetries::allow(Reached reached, int retries) {
  if (reached == Reached::nothing) return unsent_++ < kMostUnsent;
  return retries == 0 && !std::exchange(unserved_, true);
}

}  // namespace weir
