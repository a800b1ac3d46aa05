#pragma once

// Windows are aligned to the wall clock, so tests of limits begin with one.

#include <chrono>
#include <string>

#include "tests/support/socket.h"

namespace weir::test {

// Returns when a window of that length has just begun; or is about to, `before` ahead of it.
void wait_for_window(std::chrono::seconds length = std::chrono::seconds{1}, Span before = Span{0});

// The number of the window that a moment lies in.
long window_of(Instant moment, std::chrono::seconds length = std::chrono::seconds{1});
// The number of the one that begins then, as keys of claims say it: 2026-11-18T05:04:00Z.
long window_that_begins(const std::string& utc, std::chrono::seconds length);

}  // namespace weir::test
