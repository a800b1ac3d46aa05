#include "proxy/admission.h"

#include <algorithm>
#include <utility>

#include "coordination/window.h"

namespace weir {
namespace {

using http::Denial;
using http::Task;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

// A stay in line that counts as waiting. Where units were left to claim it must be longer than a
// claim takes, which is none.
constexpr milliseconds kWaited{1};
constexpr milliseconds kClaimed{50};

// From the later of the request's start and the start of the window that it is forwarded in, by the
// wall clock that windows go by; in_flight knows no window.
SteadyTime::duration overhead(const Limit& limit, const Instant& began, const Instant& forwarded) {
  auto took = forwarded.steady - began.steady;
  if (limit.mode != Mode::in_flight) {
    const Window window = window_at(forwarded.wall, limit.window);
    took = std::min<SteadyTime::duration>(took, forwarded.wall - window.start);
  }
  return std::max(took, SteadyTime::duration::zero());
}

}  // namespace

Admission::Admission(Coordinator& coordinator, http::Connection& client)
    : coordinator_(coordinator),
      client_(client),
      wakeup_(client.loop()),
      deadline_([this] { leave(State::timed_out); }) {}

Admission::~Admission() {
  if (state_ == State::in_line) allowance_->leave(waiter_);
}

void Admission::begin(const Subject& subject) {
  subject_ = subject;
  passes_ = subject_.policy == nullptr;
  if (!passes_) just_now_ = began_ = client_.loop().clock().now();
}

bool Admission::patient() const {
  const Limit& limit = *subject_.limit;
  return !limit.shadow && (!limit.wait || *limit.wait > waited_);
}

std::optional<std::chrono::nanoseconds> Admission::wait_left() const {
  if (!subject_.limit->wait) return std::nullopt;
  return *subject_.limit->wait - waited_;
}

// The overhead counts from here: what was asked for is none of it.
void Admission::also_waited(std::chrono::nanoseconds time) {
  just_now_.reset();
  if (time < kWaited) return;
  waited_ += time;
  subject_.stats->wait.observe(time);
  if (subject_.policy) began_ = client_.loop().clock().now();
}

void Admission::look() {
  if (!subject_.policy) return;
  learn_standing(*coordinator_.find(*subject_.policy, subject_.resource)->allowance(),
                 client_.loop().clock().now());
}

bool Admission::admitted_at_once() {
  if (passes_) return true;
  take(patient());
  return state_ == State::answered && settle_answer() == Entered::admitted;
}

void Admission::take(bool patient) {
  allowance_ = coordinator_.find(*subject_.policy, subject_.resource)->allowance();
  waiter_ = Waiter{};
  waiter_.wake = &Admission::wake;
  waiter_.who = this;
  waiter_.tenant = subject_.tenant;
  waiter_.patient = patient;
  wanted_->settle();
  refusal_.reset();
  state_ = State::in_line;
  if (!just_now_) just_now_ = client_.loop().clock().now();
  const auto taken = allowance_->take(allowance_, waiter_, subject_.limit->queue, *just_now_);
  if (taken != Allowance::Taken::waiting) state_ = State::answered;
}

// By any thread. From the post on this may be gone: the loop is all that is touched.
void Admission::wake(void* self) {
  auto* const admission = static_cast<Admission*>(self);
  admission->client_.loop().post([admission] { admission->woken(); });
}

void Admission::woken() {
  state_ = State::answered;
  wakeup_.wake_now();
}

// Out of the line, unless the answer is already on its way: then that is waited for.
void Admission::leave(State why) {
  if (why == State::client_gone) client_gone_ = true;
  if (state_ != State::in_line || !allowance_->leave(waiter_)) return;
  state_ = why;
  wakeup_.wake();
}

void Admission::cancel() { leave(State::client_gone); }

// Behind admitted_at_once(), if that said no.
Task<Admission::Entered> Admission::wait() {
  if (state_ == State::in_line) {
    just_now_.reset();
    http::Loop& loop = client_.loop();
    const SteadyTime from = loop.clock().steady_now();
    const auto counts_from = allowance_->summary().state.full ? kWaited : kClaimed;
    client_.stream().release_buffer();
    if (client_.gone()) cancel();
    if (waiter_.patient && subject_.limit->wait) {
      loop.deadlines().arm(deadline_, duration_cast<milliseconds>(*subject_.limit->wait - waited_));
    }
    while (state_ == State::in_line) co_await wakeup_.wait();
    deadline_.disarm();
    const auto waited = loop.clock().steady_now() - from;
    if (waiter_.patient && waited >= counts_from) {
      waited_ += waited;
      subject_.stats->wait.observe(waited);
    }
  }
  co_return settle_answer();
}

// Makes the answer ours. A unit for a client that has gone is for the next in line.
Admission::Entered Admission::settle_answer() {
  const auto asked_at = std::exchange(just_now_, std::nullopt);
  const State answer = std::exchange(state_, State::outside);
  Permit permit = std::move(waiter_.permit);
  waiter_.allowance.reset();
  const std::shared_ptr<Allowance> allowance = std::move(allowance_);
  if (client_gone_) return Entered::client_gone;
  if (!allowance) return refusal_ ? Entered::refused : Entered::admitted;
  const bool granted{permit};
  if (granted) *wanted_ = std::move(permit);
  if (!granted || subject_.headers != LimitHeaders::off) {
    learn_standing(*allowance, asked_at ? *asked_at : client_.loop().clock().now());
  }
  if (granted) return Entered::admitted;
  refusal_ = answer == State::timed_out ? Refusal::limit : waiter_.refusal;
  if (!subject_.limit->shadow) return Entered::refused;
  shadow_denied_ = shadow_denied_ || refusal_ == Refusal::limit;
  refusal_.reset();
  passes_ = true;
  return Entered::admitted;
}

Task<bool> Admission::enter_again() {
  if (passes_) co_return true;
  // One that was not used is as good as another; and where a unit is held and not used up, the
  // attempt that ended leaves its own to this one.
  const Mode mode = subject_.limit->mode;
  const bool held = mode == Mode::in_flight || mode == Mode::until_done;
  if (permit_ && (held || !permit_.spent()) && may_send()) co_return true;
  take(false);
  co_return co_await wait() == Entered::admitted;
}

Task<bool> Admission::enter_beside(Permit& permit) {
  if (passes_) co_return true;
  wanted_ = &permit;
  take(false);
  const Entered entered = co_await wait();
  wanted_ = &permit_;
  co_return entered == Entered::admitted;
}

bool Admission::may_send() { return may_send(permit_); }

bool Admission::may_send(const Permit& permit) {
  if (subject_.policy == nullptr) return true;
  sending_at_ = client_.loop().clock().now();
  return passes_ || permit.good(sending_at_);
}

void Admission::sent() { sent(permit_); }

void Admission::sent(Permit& permit) {
  if (subject_.policy == nullptr) return;
  if (permit && !permit.spent()) {
    permit.spend();
    subject_.rule_stats->units_spent.add();
  }
  if (std::exchange(measured_, true)) return;
  subject_.stats->admission_overhead.observe(overhead(*subject_.limit, began_, sending_at_));
}

void Admission::learn_standing(const Allowance& allowance, const Instant& now) {
  // Turned away before the first claim: nothing is known, and so nothing is used.
  const bool known = permit_ || allowance.summary().state.limit > 0;
  standing_ =
      known ? allowance.standing(now) : Standing{subject_.policy->limit().units, std::nullopt};
  standing_at_ = client_.loop().deadlines().now();
}

Ending Admission::ending() const {
  switch (*refusal_) {
    case Refusal::limit:
      return Ending::limit;
    case Refusal::store_unavailable:
      return Ending::store_unavailable;
    case Refusal::queue_full:
      return Ending::queue_full;
    case Refusal::draining:
      break;
  }
  return Ending::draining;
}

http::LocalReply Admission::denial() const {
  const int more_in = static_cast<int>(standing_.more_in.value_or(std::chrono::seconds{1}).count());
  switch (*refusal_) {
    case Refusal::limit:
      return {Denial::limit,
              "no unit came free in the time that the rule allows for waiting",
              {},
              more_in};
    case Refusal::store_unavailable:
      return {Denial::store_unavailable, "what is left of the limit cannot be asked for"};
    case Refusal::queue_full:
      return {Denial::queue_full, "too many requests are waiting", {}, more_in};
    case Refusal::draining:
      break;
  }
  return {Denial::draining, "the request was waiting when the replica was told to stop"};
}

LimitFields Admission::fields(std::string& out) const {
  out.clear();
  if (subject_.policy == nullptr) return {};
  Standing standing = standing_;
  if (standing.more_in) {  // the answer may come long after
    const auto since =
        duration_cast<std::chrono::seconds>(client_.loop().deadlines().now() - standing_at_);
    *standing.more_in = std::max(*standing.more_in - since, std::chrono::seconds{0});
  }
  append_limit_fields(
      out, subject_.headers,
      {subject_.rule, *subject_.limit, standing, duration_cast<milliseconds>(waited_)});
  return {subject_.headers, out};
}

}  // namespace weir
