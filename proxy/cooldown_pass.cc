#include "proxy/cooldown_pass.h"

#include <algorithm>
#include <utility>

#include "proxy/attempt/pushback.h"
#include "proxy/attempt/status_code.h"

namespace weir {

using http::Denial;
using http::Task;
using std::chrono::ceil;
using std::chrono::milliseconds;
using Kind = Cooldown::Verdict::Kind;

CooldownPass::CooldownPass(http::Connection& client, Admission& admission)
    : client_(client),
      admission_(admission),
      wakeup_(client.loop()),
      delay_([this] { delay_over(); }),
      limit_([this] {
        limit_over_ = true;
        wakeup_.wake();
      }) {}

CooldownPass::~CooldownPass() {
  if (!subject_.cooldown) return;
  if (state_ == State::held) subject_.cooldown->leave(visitor_);
  step_back();
}

void CooldownPass::begin(const Subject& subject) {
  subject_ = subject;
  visitor_.project = subject.project;
  visitor_.wake = &CooldownPass::wake;
  visitor_.who = this;
}

void CooldownPass::ask() {
  verdict_ = subject_.cooldown->ask(visitor_, now());
  state_ = verdict_.kind == Kind::held ? State::held : State::outside;
}

bool CooldownPass::free() {
  if (!subject_.cooldown) return true;
  ask();
  return verdict_.kind == Kind::go;
}

// By any thread. From the post on this may be gone: the loop is all that is touched.
void CooldownPass::wake(void* self) {
  auto* const pass = static_cast<CooldownPass*>(self);
  pass->client_.loop().post([pass] { pass->woken(); });
}

void CooldownPass::woken() {
  state_ = State::woken;
  wakeup_.wake_now();
}

// Unless its wake is on the way anyhow. In one step: who has left comes behind who has not.
void CooldownPass::delay_over() {
  if (state_ != State::held) return;
  const auto verdict = subject_.cooldown->ask_again(visitor_, now());
  if (!verdict) return;
  verdict_ = *verdict;
  if (verdict_.kind != Kind::held) state_ = State::outside;
  wakeup_.wake();
}

void CooldownPass::interrupt() {
  interrupted_ = true;
  wakeup_.wake();
}

Task<CooldownPass::Entered> CooldownPass::wait() {
  if (verdict_.kind == Kind::draining) co_return Entered::refused;
  if (!std::exchange(counted_, true)) subject_.stats->cooldown_waits.add();
  WaitingRoom& room = *subject_.room;
  room_full_ = room.waiting >= room.max;
  const auto left = admission_.wait_left();
  limit_over_ = room_full_ || (left && left->count() <= 0);
  if (left && !limit_over_) client_.loop().deadlines().arm(limit_, ceil<milliseconds>(*left));
  if (client_.gone()) interrupted_ = true;
  client_.stream().release_buffer();
  const SteadyTime from = now();
  ++room.waiting;
  co_await stay();
  --room.waiting;
  limit_.disarm();
  delay_.disarm();
  admission_.also_waited(now() - from);
  if (interrupted_) {
    step_back();
    co_return Entered::interrupted;
  }
  if (verdict_.kind == Kind::go) co_return Entered::passed;
  co_return Entered::refused;
}

// Asks whenever it is worth it, until it may go or may not wait any longer.
Task<void> CooldownPass::stay() {
  for (;;) {
    if (state_ == State::woken) {
      state_ = State::outside;
      if (interrupted_) co_return;
      ask();
    }
    if (state_ != State::held) co_return;
    // If it cannot leave, its wake is on the way and has to be waited for.
    if ((interrupted_ || limit_over_) && subject_.cooldown->leave(visitor_)) {
      state_ = State::outside;
      co_return;
    }
    const auto delay = std::max(ceil<milliseconds>(verdict_.until - now()), milliseconds{0});
    client_.loop().deadlines().arm(delay_, delay);
    co_await wakeup_.wait();
  }
}

bool CooldownPass::stays() {
  const auto left = admission_.wait_left();
  if (state_ != State::held || !left || verdict_.behind_probe) return true;
  if (verdict_.until - now() <= *left || !subject_.cooldown->leave(visitor_)) return true;
  state_ = State::outside;
  return false;
}

bool CooldownPass::free_beside() {
  return !subject_.cooldown || subject_.cooldown->free_now(visitor_, now());
}

std::optional<SteadyTime> CooldownPass::not_before() const {
  if (!subject_.cooldown) return std::nullopt;
  return subject_.cooldown->not_before(subject_.project, now());
}

void CooldownPass::step_back() {
  if (subject_.cooldown) subject_.cooldown->settle(visitor_, now());
}

SteadyTime CooldownPass::sending() const { return subject_.cooldown ? now() : SteadyTime{}; }

void CooldownPass::answered(const http::Head& answer, SteadyTime sent) {
  if (!subject_.cooldown) return;
  const Instant now = client_.loop().clock().now();
  if (FailureMemory::counts(answer.status)) {
    const auto retry_after = read_retry_after(answer.fields, now.wall);
    subject_.cooldown->failed(visitor_,
                              {answer.status, subject_.project, sent,
                               retry_after.value_or(milliseconds{0}), subject_.random->fraction()},
                              now);
  } else if (answer.status >= 200 && answer.status < 300 &&
             outcome_of_answer(answer.status, answer.fields).code == StatusCode::ok) {
    subject_.cooldown->succeeded(visitor_, sent, now);
  } else {
    subject_.cooldown->settle(visitor_, now.steady);
  }
}

Ending CooldownPass::ending() const {
  if (verdict_.kind == Kind::draining) return Ending::draining;
  return room_full_ ? Ending::queue_full : Ending::cooldown;
}

http::LocalReply CooldownPass::denial() const {
  if (verdict_.kind == Kind::draining) {
    return {Denial::draining, "the request was waiting when the replica was told to stop"};
  }
  int ends_in = 1;  // a probe may be answered at any time
  if (!verdict_.behind_probe) {
    const auto left = ceil<std::chrono::seconds>(verdict_.until - now()).count();
    ends_in = static_cast<int>(std::clamp<std::int64_t>(left, 1, 1'000'000'000));
  }
  if (room_full_) return {Denial::queue_full, "too many requests are waiting", {}, ends_in};
  return {Denial::cooldown,
          "the upstream's cooldown lasts longer than the rule allows for waiting",
          {},
          ends_in};
}

}  // namespace weir
