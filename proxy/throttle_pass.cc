#include "proxy/throttle_pass.h"

#include <algorithm>
#include <utility>

namespace weir {

using http::Denial;
using http::Task;
using std::chrono::ceil;
using std::chrono::milliseconds;

struct ThrottlePass::Stay {
  explicit Stay(ThrottlePass& pass)
      : line(pass.subject_.gate->line()),
        loop(pass.client_.loop()),
        wakeup(loop),
        limit([this] { give_up(); }) {
    visitor.tenant = pass.subject_.tenant;
    visitor.wake = &Stay::wake;
    visitor.who = this;
  }
  ~Stay() { line.leave(visitor); }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

  void give_up() {
    over = true;
    wakeup.wake();
  }
  // By any thread. From the post on this may be gone: the loop is all that is touched.
  static void wake(void* self) {
    auto* const stay = static_cast<Stay*>(self);
    stay->loop.post([stay] {
      stay->answered = true;
      stay->wakeup.wake_now();
    });
  }

  ThrottleLine& line;
  http::Loop& loop;
  ThrottleLine::Visitor visitor;
  http::Wakeup wakeup;
  http::Deadlines::Entry limit;
  bool over = false;  // it has waited long enough, or the client has gone
  bool answered = false;
};

bool ThrottlePass::allows(Throttle::Ticket& ticket) {
  if (!subject_.gate) return true;
  if (ready_) {
    ticket = std::move(ready_);
    return true;
  }
  const bool waits = subject_.gate->options().on_limit == ThrottleOptions::OnLimit::wait;
  ticket = waits ? subject_.gate->line().accept(subject_.tenant, now())
                 : subject_.gate->throttle().accept(subject_.tenant, now());
  if (ticket) return true;
  retry_at_ = now() + ticket.retry_in();
  subject_.stats->throttled.add();
  return false;
}

// What keeps it from waiting is what it is told.
bool ThrottlePass::may_wait() {
  ending_ = Ending::throttled;
  if (subject_.gate->options().on_limit != ThrottleOptions::OnLimit::wait) return false;
  const auto left = admission_.wait_left();
  if (left && left->count() <= 0) return false;
  const WaitingRoom& room = *subject_.room;
  if (room.waiting >= room.max) ending_ = Ending::queue_full;
  return ending_ == Ending::throttled;
}

Task<ThrottlePass::Entered> ThrottlePass::wait() {
  if (!may_wait()) co_return Entered::refused;
  Stay stay(*this);
  const SteadyTime from = now();
  const auto due = stay.line.join(stay.visitor, from);
  if (!due) {
    ending_ = Ending::draining;
    co_return Entered::refused;
  }
  stay_ = &stay;
  ++subject_.room->waiting;
  subject_.bell->begin(*due);
  client_.stream().release_buffer();
  if (const auto left = admission_.wait_left()) {
    client_.loop().deadlines().arm(stay.limit, ceil<milliseconds>(*left));
  }
  co_await in_line(stay);
  subject_.bell->end();
  --subject_.room->waiting;
  stay_ = nullptr;
  admission_.also_waited(now() - from);
  ready_ = std::move(stay.visitor.ticket);
  retry_at_ = stay.visitor.retry_at.value_or(retry_at_);
  if (client_.gone()) {
    step_back();
    co_return Entered::interrupted;
  }
  if (ready_) co_return Entered::passed;
  if (stay.answered) ending_ = Ending::draining;
  co_return Entered::refused;
}

// If it cannot leave, its wake is on the way and has to be waited for.
Task<void> ThrottlePass::in_line(Stay& stay) {
  while (!stay.answered) {
    if ((stay.over || client_.gone()) && stay.line.leave(stay.visitor)) co_return;
    co_await stay.wakeup.wait();
  }
}

void ThrottlePass::step_back() {
  if (ready_) ready_.settle(Load::unknown, now());
}

void ThrottlePass::interrupt() {
  if (stay_) stay_->give_up();
}

http::LocalReply ThrottlePass::denial() const {
  const auto seconds = ceil<std::chrono::seconds>(retry_at_ - now()).count();
  const int ends_in = static_cast<int>(std::max<std::int64_t>(seconds, 1));
  switch (ending_) {
    case Ending::draining:
      return {Denial::draining, "the request was waiting when the replica was told to stop"};
    case Ending::queue_full:
      return {Denial::queue_full, "too many requests are waiting", {}, ends_in};
    default:
      return {Denial::throttled,
              "the upstream has shown how much it can serve, and this is beyond it",
              {},
              ends_in};
  }
}

}  // namespace weir
