#pragma once

// When bytes reached this machine's side of a connection, as the kernel has it: a thread that has
// to wait for a core reads them later, and would tell of requests that came closer together than
// they did.

#include <sys/types.h>

#include <cstddef>

#include "tests/support/socket.h"

namespace weir::test {

// From now on the kernel notes it; what a listener accepts inherits this.
void note_arrivals(int fd);

// As recv(); where there was something, `arrived` is when the last of it came.
ssize_t receive(int fd, char* to, std::size_t size, Instant& arrived);

}  // namespace weir::test
