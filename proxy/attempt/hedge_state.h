#pragma once

// When a hedged call sends its next attempt and whose answer it takes: gRFC A6's rules for one
// call. Pure: what happened and `now` in, a decision out; what it shares with other calls is the
// throttle. Owned by its call.
//
// One attempt at once, the next each `hedgingDelay` while fewer than `maxAttempts` were sent,
// nothing froze the call and tokens are left. A code that is not fatal sends the next at once; a
// pushback sets its time, or freezes; any other code, and OK, is the call's answer.

#include <optional>

#include "coordination/base/clock.h"
#include "proxy/attempt/retry_state.h"

namespace weir {

class HedgeState {
 public:
  // The throttle may be nullptr; both outlive this.
  HedgeState(const HedgingPolicy& policy, RetryThrottle* throttle)
      : policy_(policy), throttle_(throttle) {}

  // An attempt begins; the first at once, later ones when next() says.
  void sent(SteadyTime now);
  // When the next is to be sent. Nothing: as things are, never.
  std::optional<SteadyTime> next() const;
  // No more: there is no unit or no budget for another, or the body cannot be sent again.
  void freeze() { frozen_ = true; }
  // One that is under way is given up, and has no end to be judged.
  void cancelled() { --active_; }

  enum class Verdict {
    wait,  // for others, or for the next to be sent
    take,  // this end is the call's; whatever else is under way is to be cancelled
  };
  Verdict attempt_ended(const AttemptEnd& end, SteadyTime now);

  int sent() const { return sent_; }
  int active() const { return active_; }

 private:
  const HedgingPolicy& policy_;
  RetryThrottle* const throttle_;
  int sent_ = 0;
  int active_ = 0;
  bool frozen_ = false;
  SteadyTime next_at_{};
};

}  // namespace weir
