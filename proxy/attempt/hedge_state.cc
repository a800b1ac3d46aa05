#include "proxy/attempt/hedge_state.h"

namespace weir {

void HedgeState::sent(SteadyTime now) {
  ++sent_;
  ++active_;
  next_at_ = now + policy_.delay;
}

// Asked again when the time has come: the tokens may have gone meanwhile.
std::optional<SteadyTime> HedgeState::next() const {
  if (frozen_ || sent_ >= policy_.max_attempts) return std::nullopt;
  if (throttle_ && !throttle_->enough()) return std::nullopt;
  return next_at_;
}

HedgeState::Verdict HedgeState::attempt_ended(const AttemptEnd& end, SteadyTime now) {
  --active_;
  if (end.outcome.code == StatusCode::ok) {
    if (throttle_) throttle_->success();
    return Verdict::take;
  }
  const bool stop = end.pushback.kind == Pushback::Kind::stop;
  const bool fatal = !end.timed_out && !policy_.non_fatal.contains(end.outcome);
  if (throttle_ && (stop || !fatal)) throttle_->failure();
  if (fatal) return Verdict::take;
  if (stop) frozen_ = true;
  next_at_ = now;
  if (end.pushback.kind == Pushback::Kind::delay) next_at_ += end.pushback.delay;
  return active_ == 0 && !next() ? Verdict::take : Verdict::wait;
}

}  // namespace weir
