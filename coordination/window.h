#pragma once

// Windows: intervals of wall time, aligned to UTC, in which units are counted. Pure.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "coordination/base/clock.h"

namespace weir {

struct Window {
  WallTime start;
  std::chrono::seconds length;

  WallTime end() const { return start + length; }
  friend bool operator==(const Window&, const Window&) = default;
  friend auto operator<=>(const Window&, const Window&) = default;
};

// The window that `now` lies in; its start belongs to it, its end to the next.
Window window_at(WallTime now, std::chrono::seconds length);

// Whole seconds from `now` to `until`, rounded up; never below 0.
std::chrono::seconds seconds_until(WallTime until, WallTime now);

// "2026-11-18T05:04:00Z", as keys and the admin address have it, and back.
std::string utc_text(WallTime time);
std::optional<WallTime> parse_utc(std::string_view text);
// "2026-11-18T05:04:07.123Z"; parse_utc() reads that too.
std::string utc_text_ms(WallTime time);

// Wall time that never goes back: a window that is over stays over, whatever happens to the clock.
// Any thread.
class ForwardTime {
 public:
  WallTime read(WallTime now) {
    WallTime latest = latest_;
    while (now > latest && !latest_.compare_exchange_weak(latest, now)) {
    }
    return std::max(now, latest);
  }

 private:
  std::atomic<WallTime> latest_{WallTime{}};
};

}  // namespace weir
