#include "coordination/leases.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

using std::chrono::ceil;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kAlignedUse{20};
constexpr seconds kSlidingMargin{10};
constexpr seconds kKeptEvery{5};
constexpr seconds kKeptMargin{3};
// The next window's lease is asked for this long before it begins.
constexpr seconds kAhead{1};
constexpr std::size_t kWindowsRemembered = 64;

}  // namespace

milliseconds sliding_hold(seconds window) {
  return std::clamp<milliseconds>(milliseconds{window} / 20, milliseconds{200}, seconds{2});
}

SteadyTime::duration sliding_guard(seconds window) {
  return std::max<milliseconds>(milliseconds{10}, milliseconds{window} / 500);
}

seconds sliding_slice(seconds window) { return std::clamp(window / 10, seconds{1}, seconds{60}); }

Leases::Leases(Store& store, Random& random, const Clock& clock, Terms terms,
               std::function<void(const Shared&)> lost)
    : store_(store), random_(random), clock_(clock), terms_(terms), lost_(std::move(lost)) {}

Leases::Shared Leases::get(Mode mode, const Window& window, const Instant& now,
                           std::function<void()> ready) {
  LeaseSlot::Kind kind = LeaseSlot::Kind::aligned;
  Window of = window;
  if (mode == Mode::sliding) {
    kind = LeaseSlot::Kind::sliding;
    of = window_at(now.wall, sliding_slice(window.length));
  } else if (mode == Mode::in_flight) {
    kind = LeaseSlot::Kind::in_flight;
    of = {WallTime{}, seconds{0}};
  }
  const Key key{kind, of.start, mode == Mode::sliding ? window.length : of.length};
  Shared& slot = slots_[key];
  if (!slot || slot->state == LeaseSlot::State::over || now.steady >= slot->claims_until) {
    slot = make(key, kind, of, window.length, now);
    if (!slot->fence->open(now.steady)) {
      slots_.erase(key);
      return nullptr;
    }
    const Shared made = slot;  // the answer may come at once
    if (ready) {
      note_use(key, *made);
      made->waiting.push_back(std::move(ready));
    }
    send(made);
    return made;
  }
  if (ready) note_use(key, *slot);
  if (slot->state == LeaseSlot::State::granting && ready) slot->waiting.push_back(std::move(ready));
  return slot;
}

// A lease made ahead is not a use: the clock may be set back before its window begins.
void Leases::note_use(const Key& key, LeaseSlot& slot) {
  slot.used = true;
  if (slot.kind != LeaseSlot::Kind::aligned) return;
  use_until_.try_emplace(key, slot.claims_until);
  if (use_until_.size() > kWindowsRemembered) use_until_.erase(use_until_.begin());
}

Leases::Shared Leases::make(const Key& key, LeaseSlot::Kind kind, const Window& window,
                            seconds counted, const Instant& now) {
  auto slot = std::make_shared<LeaseSlot>();
  slot->kind = kind;
  slot->window = window;
  slot->id = static_cast<LeaseId>(random_.next() >> 1) | 1;
  slot->first_sent = now.steady;
  SteadyTime::duration use{};
  switch (kind) {
    case LeaseSlot::Kind::aligned:
      use = window.end() - now.wall + kAlignedUse;
      slot->ttl = ceil<seconds>(window.end() - now.wall) + kAlignedUse + terms_.skew;
      if (const auto known = use_until_.find(key); known != use_until_.end()) {
        use = known->second - now.steady;
      }
      slot->claims_until = now.steady + use;
      break;
    case LeaseSlot::Kind::sliding:
      use = window.length + sliding_hold(counted);
      slot->ttl = ceil<seconds>(use) + counted + kSlidingMargin;
      slot->claims_until = now.steady + window.length;
      break;
    case LeaseSlot::Kind::in_flight:
      use = terms_.kept - kKeptMargin;
      slot->ttl = terms_.kept;
      slot->claims_until = SteadyTime::max();
      break;
  }
  slot->fence = std::make_shared<Fence>(now.steady + use);
  return slot;
}

void Leases::send(const Shared& slot) {
  slot->under_way = true;
  ++slot->sends;
  store_.grant(slot->id, slot->ttl,
               [this, slot](Answer<LeaseTerm> answer) { on_granted(slot, std::move(answer)); });
}

void Leases::on_granted(const Shared& slot, Answer<LeaseTerm> answer) {
  slot->under_way = false;
  if (slot->state != LeaseSlot::State::granting) return;
  if (std::holds_alternative<StoreError>(answer)) {
    // A grant is never sent twice: a late copy would bring a lease back that had ended, without its
    // keys. One whose answer was lost is left to run out.
    slot->id = static_cast<LeaseId>(random_.next() >> 1) | 1;
    slot->next_send = clock_.steady_now() + backoff(slot->sends);
    return;
  }
  slot->state = LeaseSlot::State::ready;
  slot->next_send = slot->kind == LeaseSlot::Kind::in_flight ? slot->first_sent + kKeptEvery
                    : slot->kind == LeaseSlot::Kind::aligned
                        ? slot->claims_until - kAlignedUse - kAhead
                        : SteadyTime::max();
  for (auto& ready : std::exchange(slot->waiting, {})) ready();
}

// Full jitter: replicas that failed together do not come back together.
SteadyTime::duration Leases::backoff(int sends) {
  const milliseconds most =
      std::min(milliseconds{20} * (1 << std::min(sends, 6)), milliseconds{1000});
  return milliseconds{random_.below(static_cast<std::uint64_t>(most.count())) + 1};
}

void Leases::keep_alive(const Shared& slot) {
  slot->under_way = true;
  const SteadyTime sent = clock_.steady_now();
  store_.keep_alive(slot->id, [this, slot, sent](Answer<LeaseTerm> answer) {
    slot->under_way = false;
    if (slot->state != LeaseSlot::State::ready) return;
    const auto* term = std::get_if<LeaseTerm>(&answer);
    if (term && term->ttl.count() == 0) return gone(slot);
    if (term) {
      slot->fence->move(std::max(slot->fence->until(), sent + slot->ttl - kKeptMargin));
      slot->next_send = sent + kKeptEvery;
    } else {
      slot->next_send = clock_.steady_now() + kKeptEvery / 5;
    }
  });
}

void Leases::gone(const Shared& slot) {
  if (slot->state == LeaseSlot::State::over) return;
  slot->state = LeaseSlot::State::over;
  slot->fence->move(SteadyTime{});
  lost_(slot);
}

std::size_t Leases::forget() {
  const auto slots = std::exchange(slots_, {});
  for (const auto& [key, slot] : slots) {
    slot->state = LeaseSlot::State::over;
    slot->fence->move(SteadyTime{});
    for (auto& ready : std::exchange(slot->waiting, {})) ready();
  }
  return slots.size();
}

bool Leases::ours(LeaseId id) const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [id](const auto& slot) { return slot.second->id == id; });
}

void Leases::run(const Instant& now) {
  std::vector<Shared> all;
  all.reserve(slots_.size());
  for (auto& [key, slot] : slots_) all.push_back(slot);
  for (const Shared& slot : all) {
    if (!slot->fence->open(now.steady)) {
      if (slot->kind == LeaseSlot::Kind::in_flight) {
        gone(slot);  // not kept alive in time: it may have ended
      } else if (slot->state == LeaseSlot::State::granting) {
        for (auto& ready : std::exchange(slot->waiting, {})) ready();
      }
      slot->state = LeaseSlot::State::over;
      continue;
    }
    if (slot->under_way || now.steady < slot->next_send) continue;
    if (slot->state == LeaseSlot::State::granting) {
      send(slot);
    } else if (slot->kind == LeaseSlot::Kind::in_flight) {
      keep_alive(slot);
    } else {
      slot->next_send = SteadyTime::max();
      // Whoever used this window will want the next one.
      if (slot->used) {
        get(Mode::started, {slot->window.end(), slot->window.length}, now, nullptr);
      }
    }
  }
  std::erase_if(slots_,
                [](const auto& entry) { return entry.second->state == LeaseSlot::State::over; });
}

std::optional<SteadyTime> Leases::next_due() const {
  std::optional<SteadyTime> due;
  const auto at = [&due](SteadyTime time) { due = due ? std::min(*due, time) : time; };
  for (const auto& [key, slot] : slots_) {
    at(slot->under_way ? slot->fence->until() : std::min(slot->fence->until(), slot->next_send));
  }
  return due;
}

}  // namespace weir
