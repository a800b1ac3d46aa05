#include "proxy/http/deadlines.h"

#include <algorithm>

namespace weir::http {

void Deadlines::Entry::disarm() {
  if (!next_) return;
  next_->previous_ = previous_;
  previous_->next_ = next_;
  next_ = previous_ = nullptr;
}

void Deadlines::Entry::link_before(Entry& entry) {
  next_ = &entry;
  previous_ = entry.previous_;
  entry.previous_->next_ = this;
  entry.previous_ = this;
}

Deadlines::Deadlines(SteadyTime now) : now_(now) {
  for (Entry& head : slots_) head.next_ = head.previous_ = &head;
}

Deadlines::~Deadlines() {
  for (Entry& head : slots_) {
    while (head.next_ != &head) head.next_->disarm();
    head.next_ = head.previous_ = nullptr;
  }
}

Deadlines::Entry& Deadlines::slot(SteadyTime at) {
  return slots_[static_cast<std::size_t>(at.time_since_epoch() / kTick) % kSlots];
}

void Deadlines::arm(Entry& entry, std::chrono::milliseconds timeout) {
  entry.disarm();
  // now_ may be a tick old: one more keeps a deadline from firing early.
  entry.at_ =
      now_ + std::min(timeout, std::chrono::milliseconds{std::chrono::hours{24 * 365}}) + kTick;
  entry.link_before(slot(entry.at_));
}

void Deadlines::advance(SteadyTime now) {
  const auto turns = std::min<std::size_t>(
      static_cast<std::size_t>(now.time_since_epoch() / kTick - now_.time_since_epoch() / kTick),
      kSlots);
  const SteadyTime from = now_;
  now_ = now;
  for (std::size_t i = 0; i <= turns; ++i) {
    Entry& head = slot(from + kTick * i);
    // Moved to a list of its own first: what fires may arm into this very slot.
    Entry due;
    due.next_ = due.previous_ = &due;
    while (head.next_ != &head) {
      Entry& entry = *head.next_;
      entry.disarm();
      entry.link_before(due);
    }
    while (due.next_ != &due) {
      Entry& entry = *due.next_;
      entry.disarm();
      if (entry.at_ > now) {
        entry.link_before(slot(entry.at_));
      } else {
        entry.on_expiry_();
      }
    }
    due.next_ = due.previous_ = nullptr;
  }
}

}  // namespace weir::http
