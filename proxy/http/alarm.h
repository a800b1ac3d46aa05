#pragma once

// A timer that is exact, for the few waits that a coarse Deadlines entry is too late for. Costs a
// timer of the loop's each time it is set, and nothing while it is not. Owned by its loop's thread.

#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "proxy/http/loop.h"

namespace weir::http {

class Alarm {
 public:
  Alarm(Loop& loop, std::function<void()> ring) : loop_(loop), ring_(std::move(ring)) {}
  ~Alarm() { clear(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Rings once, so long from now; replaces what was set before.
  void set(std::chrono::nanoseconds delay);
  void clear();

 private:
  // Outlives a ring that clear() came too late for.
  struct Timer {
    asio::steady_timer timer;
    std::function<void()> ring;
    bool cleared = false;
  };

  Loop& loop_;
  const std::function<void()> ring_;
  std::shared_ptr<Timer> set_;  // nullptr: not set
};

}  // namespace weir::http
