#pragma once

// Deadlines of everything on one loop, swept coarsely: arming one costs a few pointer writes, no
// timer and no system call, and it fires up to two ticks late. A wheel of lists, one per tick; what
// lies more than one turn ahead is met on the way and put back. Owned by its loop's thread.

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

#include "coordination/base/clock.h"

namespace weir::http {

class Deadlines {
 public:
  static constexpr std::chrono::milliseconds kTick{50};

  class Entry {
   public:
    Entry() = default;  // never fires; also a list's head
    explicit Entry(std::function<void()> on_expiry) : on_expiry_(std::move(on_expiry)) {}
    ~Entry() { disarm(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    bool armed() const { return next_ != nullptr; }
    void disarm();

   private:
    friend class Deadlines;
    void link_before(Entry& entry);

    std::function<void()> on_expiry_;
    SteadyTime at_{};
    Entry* next_ = nullptr;
    Entry* previous_ = nullptr;
  };

  explicit Deadlines(SteadyTime now);
  ~Deadlines();

  // Replaces the entry's deadline, if it had one.
  void arm(Entry& entry, std::chrono::milliseconds timeout);
  // Calls what is due; an entry is disarmed before it is called, and may be armed again or
  // destroyed by that call.
  void advance(SteadyTime now);
  // The time of the last sweep: exact to a tick, and free.
  SteadyTime now() const { return now_; }

 private:
  static constexpr std::size_t kSlots = 256;

  Entry& slot(SteadyTime at);

  SteadyTime now_;
  std::array<Entry, kSlots> slots_;  // heads of circular lists
};

}  // namespace weir::http
