#include "proxy/http/alarm.h"

#include <algorithm>

namespace weir::http {

void Alarm::set(std::chrono::nanoseconds delay) {
  clear();
  set_ = std::make_shared<Timer>(Timer{asio::steady_timer{loop_.context()}, ring_});
  // Years ahead would overflow the timer's own clock.
  set_->timer.expires_after(
      std::min<std::chrono::nanoseconds>(delay, std::chrono::hours{24 * 365}));
  set_->timer.async_wait([set = set_](std::error_code) {
    if (!set->cleared) set->ring();
  });
}

// A ring that is on its way already is silenced too.
void Alarm::clear() {
  if (!set_) return;
  set_->cleared = true;
  set_->timer.cancel();
  set_.reset();
}

}  // namespace weir::http
