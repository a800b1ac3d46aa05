#include "proxy/throttle/throttle_line.h"

#include <algorithm>

namespace weir {
namespace {

// What serving may cost, however many tenants wait: it rests so long behind each time, and gives up
// behind so many denials. Those in front have their turn as soon as their bucket fills, so that
// everybody gets there.
constexpr std::chrono::milliseconds kRest{1};
constexpr int kDenials = 256;

}  // namespace

Throttle::Ticket ThrottleLine::accept(std::string_view tenant, SteadyTime now) {
  {
    std::lock_guard lock(mutex_);
    if (!line_.empty()) return {};
  }
  return throttle_.accept(tenant, now);
}

std::optional<SteadyTime> ThrottleLine::join(Visitor& visitor, SteadyTime now) {
  std::lock_guard lock(mutex_);
  if (draining_) return std::nullopt;
  const std::size_t tenants = line_.tenants();
  line_.push(visitor, visitor.tenant, Queue::fair);
  const bool rests = served_at_ != SteadyTime::min();
  // Of a tenant that waits already nothing new can be learned.
  if (line_.tenants() > tenants) {
    due_ = std::min(due_, rests ? std::max(now, served_at_ + kRest) : now);
  }
  return due_;
}

bool ThrottleLine::leave(Visitor& visitor) {
  std::lock_guard lock(mutex_);
  if (!visitor.in_line()) return false;
  line_.remove(visitor);
  if (line_.empty()) due_ = SteadyTime::max();
  return true;
}

SteadyTime ThrottleLine::serve(SteadyTime now) {
  Woken woken;
  SteadyTime due;
  {
    std::lock_guard lock(mutex_);
    if (now < due_) return due_;
    served_at_ = now;
    due_ = SteadyTime::max();
    int denials = 0;
    line_.offer([&](Line::Place& place) {
      if (denials == kDenials) return Line::Judged::stop;
      auto& visitor = static_cast<Visitor&>(place);
      visitor.ticket = throttle_.accept(visitor.tenant, now);
      if (visitor.ticket) {
        woken.push_back(&visitor);
        return Line::Judged::taken;
      }
      ++denials;
      due_ = std::min(due_, now + visitor.ticket.retry_in());
      return Line::Judged::stays;
    });
    if (!line_.empty()) due_ = denials == kDenials ? now + kRest : std::max(due_, now + kRest);
    due = due_;
  }
  wake(woken);
  return due;
}

void ThrottleLine::drain() {
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    draining_ = true;
    due_ = SteadyTime::max();
    while (Line::Place* const place = line_.pop()) woken.push_back(static_cast<Visitor*>(place));
  }
  wake(woken);
}

std::size_t ThrottleLine::waiting() const {
  std::lock_guard lock(mutex_);
  return line_.size();
}

void ThrottleLine::wake(const Woken& woken) {
  for (Visitor* visitor : woken) visitor->wake(visitor->who);
}

}  // namespace weir
