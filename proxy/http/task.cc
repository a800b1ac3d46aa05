#include "proxy/http/task.h"

#include <array>
#include <new>
#include <utility>

namespace weir::http {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kPooled = false;  // a sanitizer is to see every frame begin and end
#else
constexpr bool kPooled = true;
#endif

constexpr std::size_t kStep = 64;   // sizes are rounded up to a multiple of this,
constexpr std::size_t kSizes = 48;  // and larger ones than so many are not pooled
constexpr int kMostOfSize = 1024;   // as many as requests that commonly are under way at once

// Ended frames, in a list for each size.
class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool() {
    for (List& list : lists_) {
      while (list.first) ::operator delete(list.pop());
    }
  }

  void* take(std::size_t size) {
    const std::size_t steps = steps_of(size);
    if (steps >= kSizes) return ::operator new(size);
    List& list = lists_[steps];
    return list.first ? list.pop() : ::operator new(steps * kStep);
  }

  void give_back(void* frame, std::size_t size) noexcept {
    const std::size_t steps = steps_of(size);
    if (steps >= kSizes || lists_[steps].count == kMostOfSize) return ::operator delete(frame);
    lists_[steps].push(frame);
  }

 private:
  struct Ended {
    Ended* next;
  };
  struct List {
    void push(void* frame) {
      first = new (frame) Ended{first};
      ++count;
    }
    void* pop() {
      --count;
      return std::exchange(first, first->next);
    }
    Ended* first = nullptr;
    int count = 0;
  };
  static std::size_t steps_of(std::size_t size) { return (size + kStep - 1) / kStep; }

  std::array<List, kSizes> lists_;
};

thread_local FramePool pool;

}  // namespace

void* take_frame(std::size_t size) { return kPooled ? pool.take(size) : ::operator new(size); }

void return_frame(void* frame, std::size_t size) noexcept {
  if (kPooled) {
    pool.give_back(frame, size);
  } else {
    ::operator delete(frame);
  }
}

}  // namespace weir::http
