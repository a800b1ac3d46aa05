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
  Woken woken;
  std::optional<SteadyTime> until;
  {
    std::lock_guard lock(mutex_);
    if (now >= due_) offer(now, woken);
    until = others_until(tenant, now);
  }
  wake(woken);
  if (!until) return throttle_.accept(tenant, now);
  return Throttle::denied(std::max(*until - now, SteadyTime::duration::zero()));
}

// Nothing: nobody in line comes first.
std::optional<SteadyTime> ThrottleLine::others_until(std::string_view tenant,
                                                     SteadyTime now) const {
  if (line_.empty()) return std::nullopt;
  if (const Line::Place* own = line_.first_of(tenant)) {
    return static_cast<const Visitor*>(own)->retry_at.value_or(now);
  }
  return now < vain_until_ ? std::nullopt : std::optional{due_};
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
    vain_until_ = std::min(vain_until_, now);
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
    offer(now, woken);
    due = due_;
  }
  wake(woken);
  return due;
}

void ThrottleLine::offer(SteadyTime now, Woken& woken) {
  served_at_ = now;
  vain_until_ = SteadyTime::max();
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
    visitor.retry_at = now + visitor.ticket.retry_in();
    vain_until_ = std::min(vain_until_, *visitor.retry_at);
    return Line::Judged::stays;
  });
  if (denials == kDenials) vain_until_ = now;  // the others have not been asked
  due_ = line_.empty() ? SteadyTime::max() : std::max(vain_until_, now + kRest);
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

std::size_t ThrottleLine::waiting_before(std::string_view tenant) const {
  std::lock_guard lock(mutex_);
  return line_.first_of(tenant) ? line_.size() : 0;
}

void ThrottleLine::wake(const Woken& woken) {
  for (Visitor* visitor : woken) visitor->wake(visitor->who);
}

}  // namespace weir
