#include "coordination/allowance.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

// Whether the allowance hears of a unit again after its request was sent.
bool comes_back(Mode mode) { return mode == Mode::in_flight || mode == Mode::until_done; }

// Where nobody else has a claim, others may still have requests that wait for one.
constexpr SteadyTime::duration kQuietTenure = std::chrono::seconds{9};

// A lease that is kept alive may be found to be so by an answer that comes late: its units are not
// spent from here on, but they are not lost either.
bool may_be_good_again(const Batch& batch) {
  return batch.mode == Mode::in_flight && !batch.written_off;
}

}  // namespace

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this != &other) {
    settle();
    allowance_ = std::move(other.allowance_);
    batch_ = std::move(other.batch_);
    spent_ = other.spent_;
  }
  return *this;
}

void Permit::spend() {
  if (spent_) return;
  spent_ = true;
  if (batch_->mode == Mode::sliding) allowance_->sent(batch_);
}

void Permit::settle() {
  if (!batch_) return;
  if (!spent_ || comes_back(batch_->mode)) allowance_->give_back(batch_, spent_);
  batch_.reset();
  allowance_.reset();
}

Allowance::Taken Allowance::take(const std::shared_ptr<Allowance>& self, Waiter& waiter,
                                 Queue order, const Instant& now) {
  bool ask = false;
  Woken woken;
  Taken taken = Taken::refused;  // once it is in line, the waiter may be another thread's
  {
    std::lock_guard lock(mutex_);
    if (now.wall >= opens_at_) {
      open_window(sole_->forward.read(now.wall));
      hand_on(now, woken);
    }
    const bool full = limit_ || (state_.full && now.wall < state_.full_until);
    std::shared_ptr<Batch> batch = line_.empty() ? take_unit(now) : nullptr;
    if (batch) {
      waiter.permit = Permit(self, std::move(batch));
      taken = Taken::granted;
      ask = in_hand_ <= state_.low_water && want_ask();
    } else if (room_.draining && (full || state_.store_down)) {
      waiter.refusal = Refusal::draining;
    } else if (state_.store_down) {
      waiter.refusal = Refusal::store_unavailable;
    } else if (full && !waiter.patient) {
      waiter.refusal = Refusal::limit;
    } else if (full && room_.waiting >= room_.max) {
      waiter.refusal = Refusal::queue_full;
    } else {
      taken = Taken::waiting;
      ++room_.waiting;
      if (!waiter.patient) ++impatient_;
      waiter.allowance = self;
      line_.push(waiter, waiter.tenant, order);
      // A full resource is looked at again when something changes, not because one more waits; the
      // first to wait must still be heard of, so that somebody looks.
      ask = (!full || line_.size() == 1) && want_ask();
    }
  }
  wake(woken);
  if (ask) ask_();
  return taken;
}

bool Allowance::leave(Waiter& waiter) {
  std::lock_guard lock(mutex_);
  if (!waiter.in_line()) return false;
  line_.remove(waiter);
  --room_.waiting;
  if (!waiter.patient) --impatient_;
  return true;
}

Standing Allowance::standing(const Instant& now) const {
  std::lock_guard lock(mutex_);
  if (aligned(state_.mode) && now.wall >= state_.window.end()) {
    // A new window, of which nothing has been claimed here yet.
    return {state_.limit, seconds_until(window_at(now.wall, state_.window.length).end(), now.wall)};
  }
  Standing standing{std::max<std::int64_t>(0, state_.limit - state_.used) + in_hand_, std::nullopt};
  if (state_.more_at) standing.more_in = seconds_until(*state_.more_at, now.wall);
  return standing;
}

// Units whose window or lease has ended are nobody's.
void Allowance::drop_spoiled(const Instant& now) {
  std::erase_if(batches_, [&](const std::shared_ptr<Batch>& batch) {
    if (batch->good(now)) return false;
    const std::int64_t units = std::exchange(batch->in_hand, 0);
    in_hand_ -= units;
    if (batch->sole) return true;  // nobody has missed them
    if (may_be_good_again(*batch)) {
      surplus_.insert(surplus_.end(), static_cast<std::size_t>(units), batch);
    } else {
      lost_ += units;
    }
    finish_if_over(batch);
    return true;
  });
  idle_ = std::min(idle_, in_hand_);
}

// One unit, of the oldest that are still good.
std::shared_ptr<Batch> Allowance::take_unit(const Instant& now) {
  if (!batches_.empty() && !batches_.front()->good(now)) drop_spoiled(now);
  for (auto place = batches_.begin(); place != batches_.end(); ++place) {
    std::shared_ptr<Batch> batch = *place;  // outlives its place
    // Held too long: the coordinator is about to withdraw it.
    if (!batch->good(now) || now.steady >= batch->hold_until) continue;
    --in_hand_;
    idle_ = std::min(idle_, in_hand_);
    ++taken_;
    if (--batch->in_hand == 0) batches_.erase(place);
    if (batch->sole) {
      ++opened_.front().used;
      ++sole_->claimed;
    }
    if (batch->mode != Mode::started) {
      ++batch->out;
      ++out_;
    }
    return batch;
  }
  return nullptr;
}

void Allowance::hand_on(const Instant& now, Woken& woken) {
  while (!line_.empty()) {
    std::shared_ptr<Batch> batch = take_unit(now);
    if (!batch) return;
    auto& waiter = static_cast<Waiter&>(*line_.pop());
    waiter.permit = Permit(waiter.allowance, std::move(batch));
    answer(waiter, woken);
  }
}

void Allowance::answer(Waiter& waiter, Woken& woken) {
  --room_.waiting;
  if (!waiter.patient) --impatient_;
  woken.push_back(&waiter);
}

// Outside the lock, and without a look at the waiter after its wake: it may be gone by then.
void Allowance::wake(const Woken& woken) {
  for (Waiter* waiter : woken) {
    const auto call = waiter->wake;
    call(waiter->who);
  }
}

// Sliding: the unit is used from now on; its key is needed for a window from here.
void Allowance::sent(const std::shared_ptr<Batch>& batch) {
  const SteadyTime now = clock_.steady_now();
  bool ask = false;
  {
    std::lock_guard lock(mutex_);
    batch->last_use = std::max(batch->last_use, now);
    --batch->out;
    --out_;
    finish_if_over(batch);
    ask = !finished_.empty() && want_ask();
  }
  if (ask) ask_();
}

// A unit that was not sent, or whose request has ended: for the next in line, unless its time is
// over.
void Allowance::give_back(const std::shared_ptr<Batch>& batch, bool spent) {
  const Instant now = clock_.now();
  bool ask = false;
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    if (batch->mode != Mode::started) {
      --batch->out;
      --out_;
    }
    if (batch->sole) {
      take_back_unit(batch, spent);
      hand_on(now, woken);
    } else if (!batch->good(now) && may_be_good_again(*batch)) {
      surplus_.push_back(batch);
      ask = true;
    } else if (!batch->good(now)) {
      if (!spent) ++lost_;
      finish_if_over(batch);
      ask = !finished_.empty() || !line_.empty();
    } else if (batch->recalled || (spent && !stays(*batch, now.steady))) {
      surplus_.push_back(batch);
      ask = true;
    } else {
      if (batch->in_hand++ == 0) batches_.insert(batches_.begin(), batch);
      ++in_hand_;
      hand_on(now, woken);
      ask = woken.empty();
    }
    ask = ask && want_ask();
  }
  wake(woken);
  if (ask) ask_();
}

// Whether a unit that has come back is for this replica's next: not for ever where others want
// some, nor where the limit has been lowered below what is used.
bool Allowance::stays(const Batch& batch, SteadyTime now) const {
  if (state_.used > state_.limit) return false;
  if (!state_.above_share) return true;
  const auto longer = state_.contested ? SteadyTime::duration{0} : kQuietTenure;
  return now - longer < batch.pass_on_until;  // which may be for ever: nothing can be added to it
}

// Only a sliding batch's end matters to the coordinator: its keys go a window after it.
void Allowance::finish_if_over(const std::shared_ptr<Batch>& batch) {
  if (batch->mode == Mode::sliding && batch->in_hand == 0 && batch->out == 0) {
    finished_.push_back(batch);
  }
}

bool Allowance::want_ask() { return !std::exchange(asked_, true); }

Allowance::Demand Allowance::look() {
  const Instant now = clock_.now();
  std::lock_guard lock(mutex_);
  drop_spoiled(now);
  asked_ = false;
  Demand demand{line_.size(), in_hand_, out_, taken_, idle_, std::exchange(lost_, 0), {}, {}};
  demand.finished.swap(finished_);
  demand.surplus.swap(surplus_);
  return demand;
}

void Allowance::reset_idle() {
  std::lock_guard lock(mutex_);
  idle_ = in_hand_;
}

void Allowance::bring(std::shared_ptr<Batch> batch) {
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    in_hand_ += batch->in_hand;
    batches_.push_back(std::move(batch));
    hand_on(clock_.now(), woken);
  }
  wake(woken);
}

std::int64_t Allowance::withdraw(const std::shared_ptr<Batch>& batch, std::int64_t at_most) {
  std::lock_guard lock(mutex_);
  const std::int64_t units = std::min(batch->in_hand, at_most);
  if (units == 0) return 0;
  batch->in_hand -= units;
  in_hand_ -= units;
  idle_ = std::min(idle_, in_hand_);
  if (batch->in_hand == 0) std::erase(batches_, batch);
  finish_if_over(batch);
  return units;
}

std::int64_t Allowance::recall(const std::shared_ptr<Batch>& batch) {
  std::lock_guard lock(mutex_);
  batch->recalled = true;
  return take_back(batch);
}

std::int64_t Allowance::write_off(const std::shared_ptr<Batch>& batch) {
  std::lock_guard lock(mutex_);
  batch->written_off = true;
  return take_back(batch);
}

std::int64_t Allowance::take_back(const std::shared_ptr<Batch>& batch) {
  const std::int64_t units = std::exchange(batch->in_hand, 0);
  in_hand_ -= units;
  idle_ = std::min(idle_, in_hand_);
  std::erase(batches_, batch);
  return units;
}

void Allowance::refuse(Refusal why, Whom whom) {
  if (room_.draining && whom == Whom::impatient) {  // nobody is patient then
    why = Refusal::draining;
    whom = Whom::everybody;
  }
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    if (line_.empty() || (whom == Whom::impatient && impatient_ == 0)) return;
    line_.each([&](Line::Place& place) {
      auto& waiter = static_cast<Waiter&>(place);
      if (whom == Whom::impatient && waiter.patient) return;
      line_.remove(place);
      waiter.refusal = why;
      answer(waiter, woken);
    });
  }
  wake(woken);
}

void Allowance::refuse_excess() {
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    while (room_.waiting > room_.max && !line_.empty()) {
      auto& waiter = static_cast<Waiter&>(*line_.pop_last());
      waiter.refusal = Refusal::queue_full;
      answer(waiter, woken);
    }
  }
  wake(woken);
}

void Allowance::set(const State& state) {
  std::lock_guard lock(mutex_);
  state_ = state;
  if (!limit_) return;
  put_in_hand(0);
  limit_.reset();
  opens_at_ = WallTime::max();
}

Allowance::Summary Allowance::summary() const {
  std::lock_guard lock(mutex_);
  Summary summary{state_, line_.size(), in_hand_};
  if (limit_ && !opened_.empty()) {
    summary.state.used = opened_.front().used;
    summary.state.full = in_hand_ == 0;
    summary.in_hand = 0;
  }
  return summary;
}

bool Allowance::idle(const Instant& now) {
  std::unique_lock lock(mutex_);
  drop_spoiled(now);
  if (!surplus_.empty() && want_ask()) {
    lock.unlock();
    ask_();
    return false;
  }
  const bool used = std::any_of(opened_.begin(), opened_.end(), [&now](const Opened& opened) {
    return opened.used > 0 && now.wall < opened.batch->window_end;
  });
  return line_.empty() && (in_hand_ == 0 || limit_) && !used && out_ == 0 && finished_.empty() &&
         surplus_.empty();
}

}  // namespace weir
