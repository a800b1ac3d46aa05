#pragma once

// Windows are aligned to the wall clock, so tests of limits begin with one.

#include <chrono>

#include "tests/support/socket.h"

namespace weir::test {

// Returns when a window of that length has just begun; or is about to, `before` ahead of it.
void wait_for_window(std::chrono::seconds length = std::chrono::seconds{1}, Span before = Span{0});

// The number of the window that a moment lies in.
long window_of(Instant moment, std::chrono::seconds length = std::chrono::seconds{1});

}  // namespace weir::test
