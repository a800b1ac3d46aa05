#pragma once

// Two streams joined after both sides agreed on another protocol: bytes pass both ways until both
// have ended, one has broken, or neither has sent any for `idle`. On the streams' loop.

#include <chrono>

#include "proxy/http/stream.h"

namespace weir::http {

class Tunnel {
 public:
  Tunnel(Stream& client, Stream& server, std::chrono::milliseconds idle)
      : client_(client), server_(server), idle_(idle), beside_(client.loop()) {}

  Task<void> run();

 private:
  Task<void> copy(Stream& from, Stream& to);

  Stream& client_;
  Stream& server_;
  const std::chrono::milliseconds idle_;
  SteadyTime last_moved_{};  // either way
  Beside beside_;
};

}  // namespace weir::http
