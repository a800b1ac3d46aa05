#include "proxy/attempt/hedges.h"

#include <utility>

namespace weir {
namespace {

using http::Task;
using std::chrono::milliseconds;

// How soon to look again whether a cooldown's probe has been answered.
constexpr milliseconds kProbeLook{20};

}  // namespace

Hedges::Hedge::Hedge(Hedges& hedges, Attempt* given)
    : own(given ? nullptr : std::make_unique<Attempts::Further>(hedges.attempts_.call_)),
      attempt(given ? *given : own->attempt),
      task(hedges.attempts_.call_.client.loop()),
      deadline([this] {
        timed_out = true;
        attempt.abort();
      }) {}

Hedges::Hedges(Attempts& attempts, const HedgingPolicy& policy)
    : attempts_(attempts),
      state_(policy, attempts.surroundings_->retries->throttle()),
      alarm_(attempts.call_.client.loop(), [this] { wakeup_.wake(); }),
      wakeup_(attempts.call_.client.loop()) {
  attempts.body_.on_overflow([this](const RequestBody::Place& place) { go_on_alone(place); });
}

SteadyTime Hedges::now() const { return attempts_.call_.client.loop().clock().steady_now(); }

Task<Hedges::Result> Hedges::run() {
  hedges_.push_back(std::make_unique<Hedge>(*this, &attempts_.first_));
  start(*hedges_.front());
  for (;;) {
    Hedge* const taken = judge_ended();
    if (taken) co_return co_await finish(*taken);
    if (attempts_.ended_early()) break;
    const auto next = due();
    if (!next && state_.active() == 0) co_return co_await finish(*last_ended_);
    if (next && *next <= now()) {
      const bool sent = co_await send_next();
      if (sent) continue;
    }
    if (!ended_.empty() || attempts_.ended_early()) continue;
    const auto then = due();
    if (then) wait_until(*then);
    if (state_.active() > 0 || then) co_await wakeup_.wait();
  }
  const bool over = !attempts_.call_.client.gone();
  if (over) {
    for (const auto& hedge : hedges_) hedge->attempt.learned(Load::too_much);
  }
  cancel();
  (void)co_await finish(*hedges_.front());
  co_return over ? Result::deadline : Result::client_gone;
}

// When the next one may be sent: not in a cooldown, which no hedge waits for. It is sent behind it
// if others are at work still.
std::optional<SteadyTime> Hedges::due() const {
  const auto next = state_.next();
  const auto cool = next ? attempts_.call_.cooldown.not_before() : std::nullopt;
  if (!cool || *cool <= *next) return next;
  return state_.active() > 0 ? cool : std::nullopt;
}

void Hedges::wait_until(SteadyTime next) {
  const auto left = next - now();
  alarm_.set(left > left.zero() ? left : SteadyTime::duration{kProbeLook});
}

void Hedges::cancel() {
  for (const auto& hedge : hedges_) hedge->attempt.abort();
  wakeup_.wake();
}

void Hedges::start(Hedge& hedge) {
  const auto& timeout = attempts_.policy_->call.attempt_timeout;
  if (timeout) {
    attempts_.call_.client.loop().deadlines().arm(hedge.deadline,
                                                  std::chrono::ceil<milliseconds>(*timeout));
  }
  state_.sent(now());
  hedge.task.start(run_one(hedge));
}

Task<void> Hedges::run_one(Hedge& hedge) {
  hedge.result = co_await attempts_.try_once(hedge.attempt);
  hedge.deadline.disarm();
  const bool unanswered = hedge.result == Result::unreachable || hedge.result == Result::no_answer;
  if (hedge.timed_out && unanswered) hedge.result = Result::timed_out;
  ended_.push_back(&hedge);
  wakeup_.wake();
}

// Whose end is the call's; nullptr: nobody's yet.
Hedges::Hedge* Hedges::judge_ended() {
  while (!ended_.empty() && !attempts_.ended_early()) {
    Hedge& hedge = *ended_.front();
    ended_.pop_front();
    if (std::exchange(hedge.standing, Hedge::Standing::judged) == Hedge::Standing::cancelled) {
      continue;
    }
    // That there is no socket for one tells nothing of the others.
    if (hedge.result == Result::no_socket && (last_ended_ || state_.active() > 1)) {
      hedge.attempt.learned(Load::unknown);
      state_.cancelled();
      state_.freeze();
      continue;
    }
    last_ended_ = &hedge;
    // Nothing of the first was sent: it waits for another unit, unless others are at work.
    const bool asks_anew = hedge.result == Result::unit_over && state_.sent() == 1;
    if (asks_anew || Attempts::is_final(hedge.result)) return &hedge;
    const AttemptEnd end = attempts_.end_of(hedge.result, hedge.attempt, hedge.timed_out);
    attempts_.learn_from(hedge.result, hedge.attempt);
    if (state_.attempt_ended(end, now()) == HedgeState::Verdict::take) return &hedge;
    hedge.attempt.hold();  // what it was answered may be all that there is in the end
  }
  return nullptr;
}

// The next one is due. False: not now, or never.
Task<bool> Hedges::send_next() {
  const Call& call = attempts_.call_;
  if (attempts_.body_.overflowed()) state_.freeze();
  if (!state_.next()) co_return false;
  if (!call.cooldown.free_beside()) {
    if (state_.active() == 0) state_.freeze();
    co_return false;
  }
  if (!attempts_.afford()) {
    state_.freeze();
    co_return false;
  }
  auto hedge = std::make_unique<Hedge>(*this, nullptr);
  const bool has_unit = co_await hedge->attempt.take_unit(state_.sent());
  // What ended meanwhile may be the answer: then this one is not needed.
  if (attempts_.ended_early() || !ended_.empty() || attempts_.body_.overflowed()) co_return false;
  if (!has_unit || !hedge->attempt.allowed()) {
    attempts_.count(has_unit ? RetryRefusal::throttle : RetryRefusal::unit);
    state_.freeze();
    co_return false;
  }
  hedges_.push_back(std::move(hedge));
  attempts_.policy_->sent = state_.sent() + 1;
  attempts_.surroundings_->upstream_stats.hedge_attempts.add();
  start(*hedges_.back());
  co_return true;
}

// The body is kept no longer. Whoever has been answered meanwhile could not send the rest of it.
void Hedges::go_on_alone(const RequestBody::Place& place) {
  state_.freeze();
  for (const auto& hedge : hedges_) {
    if (&hedge->attempt.place() == &place) continue;
    const auto before = std::exchange(hedge->standing, Hedge::Standing::cancelled);
    if (before == Hedge::Standing::open) state_.cancelled();
    hedge->attempt.abort();
  }
}

// All others are closed on the wire before anything of the answer is passed on.
Task<Hedges::Result> Hedges::finish(Hedge& taken) {
  alarm_.clear();
  for (const auto& hedge : hedges_) {
    if (hedge.get() != &taken) hedge->attempt.abort();
  }
  for (const auto& hedge : hedges_) {
    co_await hedge->task.join();
    hedge->attempt.learned(Load::unknown);  // unless it was judged
    if (hedge.get() == &taken) continue;
    co_await hedge->attempt.stop();
    hedge->attempt.outbound().release();
  }
  taken.attempt.resume();
  attempts_.current_ = &taken.attempt;
  co_return taken.result;
}

}  // namespace weir
