#pragma once

// Waiting for what must come true, and for time to pass.

#include <functional>
#include <string>

#include "tests/support/socket.h"

namespace weir::test {

// Waits until it is so, and fails the test otherwise. How long that took.
Span eventually(const std::string& what, const std::function<bool()>& condition,
                Span within = patience);
// Lets what is going on go on.
void let_run(Span span);

}  // namespace weir::test
