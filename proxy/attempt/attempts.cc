#include "proxy/attempt/attempts.h"

#include <algorithm>
#include <utility>

#include "proxy/attempt/hedges.h"

namespace weir {
namespace {

using http::Task;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

milliseconds rounded_up(nanoseconds timeout) { return std::chrono::ceil<milliseconds>(timeout); }

}  // namespace

Attempts::ByPolicy::ByPolicy(Attempts& attempts, CallPolicy call_policy)
    : call(call_policy),
      state(call.retry, attempts.surroundings_->retries->throttle()),
      attempt_deadline([this, &attempts] {
        attempt_over = true;
        attempts.current().abort();
      }),
      deadline([this, &attempts] {
        over = true;
        attempts.cancel();
      }),
      pause_alarm(attempts.call_.client.loop(),
                  [this] {
                    paused = false;
                    pause_over.wake();
                  }),
      pause_over(attempts.call_.client.loop()) {}

Attempts::Attempts(http::Connection& client, Admission& admission, CooldownPass& cooldown,
                   ThrottlePass& throttle, http::Head& answer)
    : body_(client), call_{client, admission, cooldown, throttle, body_}, first_(call_, answer) {}

Attempts::~Attempts() {
  if (policy_ && policy_->sent > 1) {
    surroundings_->stats.retries_per_request.observe(
        std::chrono::duration<double>(policy_->sent - 1));
  }
}

void Attempts::begin(const Request& request, const AttemptSurroundings& surroundings) {
  surroundings_ = &surroundings;
  call_.upstream = request.upstream;
  call_.wire = request.wire;
  call_.head_size = request.head_size;
  call_.upgrade = request.upgrade;
  call_.used = nullptr;
  UpstreamRetries* const retries = surroundings.retries;
  if (!retries) return;
  const CallPolicy call = retries->policy_for(call_.client.request().method, request.path);
  policy_.emplace(*this, call);
  if ((call.retry || call.hedging) && !call_.client.body().done()) {
    policy_->replay.emplace(retries->replay_room(), call_.wire.size() - call_.head_size);
    body_.keep(*policy_->replay);
  }
}

Task<Attempts::Result> Attempts::run() {
  if (!std::exchange(counted_, true)) surroundings_->upstream_stats.first_attempts.add();
  if (policy_) return run_by_policy();
  return first_.has_ticket() ? try_and_learn() : try_once(first_);
}

void Attempts::cancel() {
  call_.cooldown.interrupt();
  current().abort();
  if (policy_) policy_->pause_over.wake();
  if (hedges_) hedges_->cancel();
}

bool Attempts::is_final(Result result) {
  return result == Result::client_gone || result == Result::body_malformed ||
         result == Result::body_too_slow || result == Result::deadline ||
         result == Result::no_socket;
}

// Without a policy, but with a throttle.
Task<Attempts::Result> Attempts::try_and_learn() {
  const Result result = co_await try_once(first_);
  first_.learned(load_of_end(result, first_));
  co_return result;
}

// One attempt; if its connection turns out to have been closed before the request was served,
// another connection in its place.
Task<Attempts::Result> Attempts::try_once(Attempt& attempt) {
  attempt.take_kept_connection();
  for (;;) {
    if (!attempt.connected()) co_await attempt.connect();
    if (call_.client.gone()) co_return Result::client_gone;
    if (!attempt.connected()) {
      co_return attempt.outbound().lacked_sockets() ? Result::no_socket : Result::unreachable;
    }
    if (!attempt.may_send()) {
      attempt.give_connection_back();
      co_return Result::unit_over;
    }
    if (failed_.attempt) {  // this one is sent in its place, if its unit is still good then
      co_await drop_failed();
      continue;
    }
    Attempt::Answer answer = Attempt::Answer::timed_out;
    const SteadyTime sent_at = call_.cooldown.sending();
    const http::Stream::Status sent = co_await attempt.send_request();
    if (sent == http::Stream::Status::full) {
      answer = Attempt::Answer::none;
    } else if (sent != http::Stream::Status::timed_out) {
      answer = co_await attempt.read_head();
    }
    if (answer == Attempt::Answer::head_read) {
      call_.cooldown.answered(attempt.answer(), sent_at);
      co_return Result::answered;
    }
    if (call_.client.gone()) co_return Result::client_gone;
    if (body_.fault() == RequestBody::Fault::malformed) co_return Result::body_malformed;
    if (body_.fault() == RequestBody::Fault::too_slow) co_return Result::body_too_slow;
    const auto reached = attempt.begun() ? TransparentRetries::Reached::server
                                         : TransparentRetries::Reached::nothing;
    if (answer == Attempt::Answer::none && attempt.may_replace_connection() &&
        transparent_.allow(reached, attempt.previous())) {
      attempt.outbound().release();
      bool has_unit = reached == TransparentRetries::Reached::nothing;
      // One that has others beside it leaves what it lost to them.
      if (!has_unit && !hedges_) has_unit = co_await call_.admission.enter_again();
      if (call_.client.gone()) co_return Result::client_gone;
      if (has_unit && reached == TransparentRetries::Reached::server) {
        has_unit = allowed_again(attempt);
      }
      if (has_unit) {
        surroundings_->upstream_stats.transparent_attempts.add();
        continue;
      }
    }
    if (answer == Attempt::Answer::timed_out) co_return Result::timed_out;
    co_return answer == Attempt::Answer::malformed ? Result::malformed_answer : Result::no_answer;
  }
}

Task<Attempts::Result> Attempts::run_by_policy() {
  ByPolicy& policy = *policy_;
  if (!std::exchange(policy.begun, true)) {
    surroundings_->retries->on_first_try(now());
    policy.left = policy.call.timeout;
  }
  const SteadyTime from = now();
  if (policy.left) {
    call_.client.loop().deadlines().arm(policy.deadline, rounded_up(*policy.left));
  }
  const Result result = co_await run_in_time();
  // The rest of the answer has its own time, and so has a wait for another unit.
  policy.deadline.disarm();
  if (result == Result::unit_over) {
    first_.learned(Load::unknown);
    if (policy.left) *policy.left = std::max<nanoseconds>(*policy.left - (now() - from), {});
  }
  co_return result;
}

Task<Attempts::Result> Attempts::run_in_time() {
  ByPolicy& policy = *policy_;
  if (!policy.call.hedging || !call_.upgrade.empty()) return try_until_answered();
  call_.interim = Call::Interim::drop;
  policy.used.assign(call_.upstream->options().servers.size(), false);
  call_.used = &policy.used;
  hedges_ = std::make_unique<Hedges>(*this, *policy.call.hedging);
  return hedges_->run();
}

Task<Attempts::Result> Attempts::try_until_answered() {
  for (;;) {
    const Result result = co_await try_in_time(current());
    if (result == Result::unit_over) {
      if (policy_->sent == 1) co_return result;
      const bool has_unit = co_await unit_for_retry();
      if (has_unit) continue;
      co_return co_await take_back_retry();
    }
    if (result == Result::no_socket && failed_.attempt) {
      call_.admission.give_back();
      co_return co_await take_back_retry();
    }
    if (failed_.attempt) co_await drop_failed();
    learn_from(result, current());
    if (is_final(result)) co_return result;
    const AttemptEnd end = end_of(result, current(), policy_->attempt_over);
    const RetryDecision decision =
        policy_->state.attempt_ended(end, surroundings_->random.fraction());
    const bool granted = decision.retry_in && afford();
    if (!decision.retry_in) count(decision.refusal);
    if (!granted) co_return result;
    current().hold();
    call_.cooldown.step_back();
    co_await pause(*decision.retry_in);
    auto next = co_await next_attempt(result);
    if (call_.client.gone()) co_return Result::client_gone;
    if (policy_->over) co_return Result::deadline;
    if (!next) {  // the failure stands, and its answer's time goes on
      current().resume();
      co_return result;
    }
    move_on(result, std::move(next));
  }
}

// There is no unit or no connection for it, and nothing of it was sent: the failure stands.
Task<Attempts::Result> Attempts::take_back_retry() {
  const Result result = failed_.result;
  if (call_.client.gone() || policy_->over || !failed_.attempt) {
    if (failed_.attempt) co_await drop_failed();
    if (call_.client.gone()) co_return Result::client_gone;
    co_return policy_->over ? Result::deadline : Result::no_answer;
  }
  current_ = failed_.attempt;
  further_ = std::move(failed_.further);
  failed_ = {};
  --policy_->sent;
  current().resume();
  co_return result;
}

// One attempt within its own time and that of the whole call.
Task<Attempts::Result> Attempts::try_in_time(Attempt& attempt) {
  ByPolicy& policy = *policy_;
  if (policy.over) {  // nothing of it was sent
    attempt.learned(Load::unknown);
    co_return Result::deadline;
  }
  policy.attempt_over = false;
  if (policy.call.attempt_timeout) {
    call_.client.loop().deadlines().arm(policy.attempt_deadline,
                                        rounded_up(*policy.call.attempt_timeout));
  }
  const Result result = co_await try_once(attempt);
  policy.attempt_deadline.disarm();
  if (result == Result::answered || result == Result::client_gone) co_return result;
  if (policy.over) co_return Result::deadline;
  co_return policy.attempt_over ? Result::timed_out : result;
}

bool Attempts::afford() {
  if (surroundings_->retries->pay(now())) return true;
  count(RetryRefusal::budget);
  return false;
}

// Of what the upstream told this request and what it told the project, the later holds. Of what
// failed no more is kept meanwhile than an answer that may have to be passed on, and no unit,
// unless the upstream is still at work on that.
Task<bool> Attempts::past_cooldown(Result failed) {
  if (ended_early()) co_return false;
  if (call_.cooldown.free()) co_return true;
  bool past = false;
  if (call_.cooldown.stays()) {
    if (failed != Result::answered) {
      co_await current().stop();
      current().outbound().release();
    }
    if (failed != Result::answered || current().answer_is_whole()) call_.admission.settle();
    const CooldownPass::Entered entered = co_await call_.cooldown.wait();
    past = entered == CooldownPass::Entered::passed;
  }
  if (!past && !ended_early()) count(RetryRefusal::pushback);
  co_return past;
}

// Taken without waiting: where none is free, what the retry was to mend stands.
Task<bool> Attempts::unit_for_retry() {
  if (ended_early()) co_return false;
  const bool has_unit = co_await call_.admission.enter_again();
  if (!has_unit && !ended_early()) count(RetryRefusal::unit);
  co_return has_unit;
}

// With all that it needs to be sent; nullptr: it is not to be.
Task<std::unique_ptr<Attempts::Further>> Attempts::next_attempt(Result failed) {
  bool has_unit = co_await past_cooldown(failed);
  if (has_unit) has_unit = co_await unit_for_retry();
  if (!has_unit || ended_early()) co_return nullptr;
  auto next = std::make_unique<Further>(call_);
  if (next->attempt.allowed()) co_return next;
  call_.admission.give_back();
  count(RetryRefusal::throttle);
  co_return nullptr;
}

// What was sent is lost, and the throttle is asked for another in its place.
bool Attempts::allowed_again(Attempt& attempt) {
  attempt.learned(Load::unknown);
  if (attempt.allowed()) return true;
  call_.admission.give_back();
  return false;
}

Task<void> Attempts::pause(nanoseconds delay) {
  ByPolicy& policy = *policy_;
  policy.paused = true;
  policy.pause_alarm.set(delay);
  while (policy.paused && !ended_early()) co_await policy.pause_over.wait();
  policy.pause_alarm.clear();
}

AttemptEnd Attempts::end_of(Result result, Attempt& attempt, bool timed_out) const {
  AttemptEnd end;
  if (body_.overflowed()) end.answer = AttemptEnd::Answer::committed;
  if (result == Result::answered) {
    const http::Head& answer = attempt.answer();
    end.outcome = outcome_of_answer(answer.status, answer.fields);
    end.pushback =
        read_pushback(answer.status, answer.fields, call_.client.loop().clock().wall_now());
  } else {
    end.timed_out = timed_out;
    end.outcome.code =
        result == Result::timed_out ? StatusCode::deadline_exceeded : StatusCode::unavailable;
  }
  return end;
}

Load Attempts::load_of_end(Result result, const Attempt& attempt) {
  switch (result) {
    case Result::answered:
      return load_of(outcome_of_answer(attempt.answer().status, attempt.answer().fields));
    case Result::unreachable:
      return Load::too_much;
    case Result::timed_out:
    case Result::deadline:  // a client that is slow says nothing of the upstream
      return attempt.sends_body() ? Load::unknown : Load::too_much;
    default:
      return Load::unknown;
  }
}

void Attempts::learn_from(Result result, Attempt& attempt) {
  const Load load = load_of_end(result, attempt);
  attempt.learned(load);
  if (!is_final(result)) surroundings_->retries->on_end(load, now());
}

// From the attempt that failed to a new one.
void Attempts::move_on(Result result, std::unique_ptr<Further> next) {
  failed_ = {current_, std::move(further_), result};
  further_ = std::move(next);
  current_ = &further_->attempt;
  current_->follows(policy_->state.previous_attempts());
  ++policy_->sent;
  surroundings_->upstream_stats.retry_attempts.add();
}

Task<void> Attempts::drop_failed() {
  co_await failed_.attempt->stop();
  failed_.attempt->outbound().release();
  failed_ = {};
}

void Attempts::count(RetryRefusal refusal) {
  if (refusal == RetryRefusal::none) return;
  surroundings_->stats.retry_refusals[static_cast<std::size_t>(refusal)].add();
}

}  // namespace weir
