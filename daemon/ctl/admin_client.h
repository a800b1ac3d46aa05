#pragma once

// Asks a daemon's admin address for a page. Blocks; gives up when a step of it (to connect, the
// next bytes) takes a few seconds.

#include <string>

namespace weir::ctl {

struct Answer {
  int status = 0;     // 0: there is none,
  std::string fault;  // because of this
  std::string body;
};

// `admin` is HOST or HOST:PORT, IPv6 addresses in brackets.
Answer ask(const std::string& admin, const std::string& page);

}  // namespace weir::ctl
