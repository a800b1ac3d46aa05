#pragma once

// One event loop: the thread that runs it owns every connection, pool and deadline on it, and
// nothing of those is touched from another thread. Others reach it only through post().

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordination/base/clock.h"
#include "proxy/http/deadlines.h"
#include "proxy/http/readiness.h"
#include "proxy/http/task.h"

namespace weir::http {

using Executor = asio::io_context::executor_type;

class Loop {
 public:
  explicit Loop(const Clock& clock);

  asio::io_context& context() { return context_; }
  Executor executor() { return context_.get_executor(); }
  Deadlines& deadlines() { return deadlines_; }
  Readiness& readiness() { return readiness_; }
  const Clock& clock() const { return clock_; }

  // Runs until stop(), on the calling thread.
  void run();
  void stop();  // any thread
  // Any thread; `work` then runs on the loop.
  template <class Work>
  void post(Work work) {
    asio::post(context_, std::move(work));
  }

  // The time as a Date field has it, made once a second.
  std::string_view http_date();

  // What connections read into while they have something to say, in two sizes: one after another
  // uses the same. `capacity` is either.
  static constexpr std::size_t kBuffer = 16 * 1024, kLargeBuffer = 64 * 1024;
  std::unique_ptr<char[]> take_buffer(std::size_t capacity);
  void return_buffer(std::unique_ptr<char[]> buffer, std::size_t capacity);

 private:
  using Buffers = std::vector<std::unique_ptr<char[]>>;
  static constexpr std::size_t kSpareBytes = 4 * 1024 * 1024;  // of each size

  Buffers& spare(std::size_t capacity) {
    return capacity == kBuffer ? spare_buffers_ : spare_large_buffers_;
  }
  void tick();

  const Clock& clock_;
  // The reactor's own locks are off (one thread per loop); the scheduler's stay on for post().
  asio::io_context context_{ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  asio::executor_work_guard<Executor> work_{context_.get_executor()};
  Deadlines deadlines_;
  Readiness readiness_{context_};
  asio::steady_timer timer_{context_};
  SteadyTime date_until_{};
  std::string date_;
  Buffers spare_buffers_, spare_large_buffers_;
};

// One coroutine waits, an event wakes it. What happened is for the two to keep elsewhere: a wake
// that nobody waits for leaves no trace, so look before you wait.
class Wakeup {
 public:
  explicit Wakeup(Loop& loop) : loop_(loop) {}

  auto wait() { return Wait{*this}; }
  bool waiting() const { return waiter_ != nullptr; }
  // Resumes the waiter before returning: only as the last thing an event handler does.
  void wake_now() {
    if (waiter_) std::exchange(waiter_, nullptr).resume();
  }
  // Resumes it from the loop: from anywhere on the loop's thread.
  void wake();

 private:
  struct Wait {
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) { wakeup.waiter_ = waiter; }
    void await_resume() const {}
    Wakeup& wakeup;
  };

  Loop& loop_;
  std::coroutine_handle<> waiter_;
};

// One coroutine that runs beside its owner's. The owner joins it before it ends itself, since the
// two share what the owner holds.
class Beside {
 public:
  explicit Beside(Loop& loop) : over_(loop) {}

  void start(Task<void> task);
  Task<void> join();

 private:
  bool running_ = false;
  Wakeup over_;
};

}  // namespace weir::http
