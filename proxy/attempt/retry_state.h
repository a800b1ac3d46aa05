#pragma once

// Whether a request that failed is tried again, and when: gRFC A6's decisions for one call, in
// their order. Pure: the outcome and a random number in, a decision out; what it shares with other
// calls is the throttle. Owned by its call.
//
//   1 OK: credit the throttle, finish       5 no tokens: finish
//   2 no policy: finish                     6 committed: finish
//   3 "do not retry": a token, finish       7 attempts used up: finish
//   4 not a code to retry: finish           8 wait as the server said, or as backoff says

#include <chrono>
#include <optional>

#include "proxy/attempt/backoff.h"
#include "proxy/attempt/pushback.h"
#include "proxy/attempt/retry_refusal.h"
#include "proxy/attempt/service_config.h"

namespace weir {

struct AttemptEnd {
  Outcome outcome;
  Pushback pushback;
  enum class Answer { replaceable, committed };
  Answer answer = Answer::replaceable;
  bool timed_out = false;  // by perAttemptRecvTimeout, which is retried whatever the codes
};

struct RetryDecision {
  std::optional<std::chrono::nanoseconds> retry_in;  // nothing: finish
  RetryRefusal refusal = RetryRefusal::none;         // what kept a retry away, if there was one
};

class RetryState {
 public:
  // Either may be nullptr; both outlive this.
  RetryState(const RetryPolicy* policy, RetryThrottle* throttle)
      : policy_(policy),
        throttle_(throttle),
        backoff_(policy ? policy->backoff : BackoffOptions{}) {}

  // `random` in [0, 1).
  RetryDecision attempt_ended(const AttemptEnd& end, double random);
  // Attempts that have failed: what the next one says of itself.
  int previous_attempts() const { return attempts_; }

 private:
  const RetryPolicy* policy_;
  RetryThrottle* throttle_;
  Backoff backoff_;
  int attempts_ = 0;
};

// Attempts that the server cannot have begun to serve are made again at once, beside all of the
// above: neither attempts nor tokens nor backoff know of them.
class TransparentRetries {
 public:
  enum class Reached { nothing, server };  // what the lost attempt got to

  // `retries` are those made by policy so far: behind one, a server that was reached is not asked
  // in silence again.
  bool allow(Reached reached, int retries);

 private:
  static constexpr int kMostUnsent = 1000;
  int unsent_ = 0;
  bool unserved_ = false;
};

}  // namespace weir
