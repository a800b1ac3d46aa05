#include "proxy/http/alarm.h"

#include <algorithm>

namespace weir::http {

Alarm::Alarm(Loop& loop, std::function<void()> ring)
    : timer_(loop.context()), ring_(std::make_shared<std::function<void()>>(std::move(ring))) {}

void Alarm::set(std::chrono::nanoseconds delay) {
  clear();
  set_ = std::make_shared<bool>(true);
  // Years ahead would overflow the timer's own clock.
  timer_.expires_after(std::min<std::chrono::nanoseconds>(delay, std::chrono::hours{24 * 365}));
  timer_.async_wait([ring = ring_, set = set_](std::error_code) {
    if (*set) (*ring)();
  });
}

// A ring that is on its way already is silenced too.
void Alarm::clear() {
  if (!set_) return;
  *set_ = false;
  set_.reset();
  timer_.cancel();
}

}  // namespace weir::http
