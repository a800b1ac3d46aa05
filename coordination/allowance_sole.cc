// How a sole allowance opens windows, and counts what it needs nobody else for.

#include <algorithm>
#include <utility>

#include "coordination/allowance.h"

namespace weir {
namespace {

const std::shared_ptr<const Fence>& always_open() {
  static const auto fence = std::make_shared<const Fence>(SteadyTime::max());
  return fence;
}

}  // namespace

void Allowance::open_when_asked(const Limit& limit) {
  std::lock_guard lock(mutex_);
  limit_ = limit;
  opens_at_ = WallTime::min();
}

void Allowance::open(const Limit& limit, WallTime forward) {
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    limit_ = limit;
    open_window(forward);
    hand_on(clock_.now(), woken);
  }
  wake(woken);
}

// The one that this time lies in, unless a later one has been opened meanwhile.
void Allowance::open_window(WallTime forward) {
  const Mode mode = limit_->mode;
  Window window{};  // in_flight: always the same
  if (aligned(mode)) window = window_at(forward, limit_->window);
  const auto is_open = [&](const Opened& opened) {
    return opened.batch->mode == mode && opened.window.length == window.length &&
           opened.window.start >= window.start;
  };
  auto now_open = std::find_if(opened_.begin(), opened_.end(), is_open);
  put_in_hand(0);
  if (now_open == opened_.end()) {
    std::erase_if(opened_, [&](const Opened& opened) {
      return opened.used == 0 || forward >= opened.batch->window_end;
    });
    auto batch = std::make_shared<Batch>();
    batch->mode = mode;
    batch->sole = true;
    batch->fence = always_open();
    if (aligned(mode)) batch->window_end = window.end();
    now_open = opened_.insert(opened_.begin(), {window, std::move(batch)});
  }
  std::rotate(opened_.begin(), now_open, now_open + 1);
  const Opened& opened = opened_.front();
  put_in_hand(limit_->units - opened.used);
  state_ = {};
  state_.mode = mode;
  state_.window = aligned(mode) ? opened.window : Window{WallTime{}, limit_->window};
  state_.limit = state_.used = limit_->units;
  state_.low_water = -1;
  opens_at_ = opened.batch->window_end;
  if (aligned(mode)) state_.more_at = opens_at_;
}

// Of the open window, so many units; below 0 where the limit was lowered below what is used.
void Allowance::put_in_hand(std::int64_t units) {
  if (opened_.empty()) return;
  const std::shared_ptr<Batch>& batch = opened_.front().batch;
  take_back(batch);
  batch->in_hand = std::max<std::int64_t>(0, units);
  in_hand_ += batch->in_hand;
  if (batch->in_hand > 0) batches_.push_back(batch);
}

void Allowance::take_back_unit(const std::shared_ptr<Batch>& batch, bool spent) {
  if (!spent) ++sole_->returned;
  const auto opened = std::find_if(opened_.begin(), opened_.end(),
                                   [&batch](const Opened& one) { return one.batch == batch; });
  if (opened == opened_.end()) return;
  --opened->used;
  if (limit_ && opened == opened_.begin()) put_in_hand(limit_->units - opened->used);
}

}  // namespace weir
