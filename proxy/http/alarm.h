#pragma once

// A timer that is exact, for the few waits that a coarse Deadlines entry is too late for. Costs a
// timer of the loop's each time it is set. Owned by its loop's thread.

#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "proxy/http/loop.h"

namespace weir::http {

class Alarm {
 public:
  Alarm(Loop& loop, std::function<void()> ring);
  ~Alarm() { clear(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Rings once, so long from now; replaces what was set before.
  void set(std::chrono::nanoseconds delay);
  void clear();

 private:
  asio::steady_timer timer_;
  const std::shared_ptr<std::function<void()>>
      ring_;                   // outlives a ring that clear() came too late for
  std::shared_ptr<bool> set_;  // false: not this one
};

}  // namespace weir::http
