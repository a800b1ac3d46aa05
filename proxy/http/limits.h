#pragma once

// What one client may ask of the HTTP engine, in bytes, fields, connections and time.

#include <chrono>
#include <cstddef>

namespace weir::http {

struct Limits {
  std::size_t header_bytes = 32768;  // 431 beyond
  std::size_t header_fields = 100;   // 431 beyond
  std::size_t target_bytes = 8192;   // 414 beyond
  std::size_t connections = 20000;   // in the process; 503 beyond
};

struct Timeouts {
  std::chrono::milliseconds header{10'000};     // first byte to the head's end: 408
  std::chrono::milliseconds body_idle{30'000};  // longest pause within a body: 408
  std::chrono::milliseconds idle{60'000};       // between requests: closed
};

}  // namespace weir::http
