#pragma once

// A coroutine on one loop: what co_await waits for. It begins when it is awaited, on the same
// thread and stack, so that one which need not wait costs no more than a call; what it returns or
// throws comes out of the co_await. Its frame is taken from a pool of the thread, since a request
// has a dozen of them.
//
// Whoever awaits a task owns it. spawn() gives it away: it runs until it ends.

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

namespace weir::http {

// Memory of frames that have ended, kept for the next ones of about their size.
void* take_frame(std::size_t size);
void return_frame(void* frame, std::size_t size) noexcept;

template <class T>
class Task;

// What the promises of all tasks have in common.
class TaskPromise {
 public:
  static void* operator new(std::size_t size) { return take_frame(size); }
  static void operator delete(void* frame, std::size_t size) { return_frame(frame, size); }

  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept { return GoOn{}; }
  void unhandled_exception() noexcept { thrown_ = std::current_exception(); }

  void then(std::coroutine_handle<> awaiting) { awaiting_ = awaiting; }

 protected:
  void rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  // At its end whoever awaits it goes on; while it has not had to wait, that is its caller.
  struct GoOn {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
      return ended.promise().awaiting_;
    }
    void await_resume() noexcept {}
  };

  std::coroutine_handle<> awaiting_ = std::noop_coroutine();
  std::exception_ptr thrown_;
};

template <class T>
class TaskResult : public TaskPromise {
 public:
  Task<T> get_return_object() noexcept;
  template <class Value>
  void return_value(Value&& value) {
    result_.emplace(std::forward<Value>(value));
  }
  T take() {
    rethrow();
    return *std::move(result_);
  }

 private:
  std::optional<T> result_;
};

template <>
class TaskResult<void> : public TaskPromise {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void take() { rethrow(); }
};

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = TaskResult<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle frame) noexcept : frame_(frame) {}
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (frame_) frame_.destroy();
  }

  auto operator co_await() && noexcept { return Awaiter{frame_}; }

 private:
  struct Awaiter {
    bool await_ready() {
      frame.resume();
      return frame.done();
    }
    void await_suspend(std::coroutine_handle<> awaiting) { frame.promise().then(awaiting); }
    T await_resume() { return frame.promise().take(); }
    Handle frame;
  };

  Handle frame_;
};

template <class T>
Task<T> TaskResult<T>::get_return_object() noexcept {
  return Task<T>{Task<T>::Handle::from_promise(*this)};
}

inline Task<void> TaskResult<void>::get_return_object() noexcept {
  return Task<void>{Task<void>::Handle::from_promise(*this)};
}

// A coroutine that nobody awaits.
struct Spawned {
  struct promise_type {
    static void* operator new(std::size_t size) { return take_frame(size); }
    static void operator delete(void* frame, std::size_t size) { return_frame(frame, size); }
    Spawned get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// Runs the task from here on as far as it goes, and then whenever it is woken; `ended` is called
// behind it, also if it threw: one connection's misfortune is not the others'.
template <class Ended>
Spawned spawn(Task<void> task, Ended ended) {
  try {
    co_await std::move(task);
  } catch (...) {
  }
  ended();
}

}  // namespace weir::http
