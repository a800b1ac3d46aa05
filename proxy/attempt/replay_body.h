#pragma once

// The part of a request's body that has been sent once, kept so that it can be sent again: as
// framed for the wire, up to 256 KiB for one request and 16 MiB for an upstream. A body that grows
// beyond either is kept no longer, and its request can be sent only once. The body is its
// exchange's; the room is shared by all of an upstream's, on any thread.

#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace weir {

class ReplayRoom {
 public:
  bool take(std::size_t bytes);
  void give_back(std::size_t bytes) { taken_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::size_t taken() const { return taken_.load(std::memory_order_relaxed); }

  static constexpr std::size_t kMost = 16 * 1024 * 1024;

 private:
  std::atomic<std::size_t> taken_{0};
};

class ReplayBody {
 public:
  // `before` bytes of the body are kept elsewhere, and count.
  ReplayBody(ReplayRoom& room, std::size_t before) : room_(room) { count(before); }
  ~ReplayBody() { room_.give_back(taken_); }
  ReplayBody(const ReplayBody&) = delete;
  ReplayBody& operator=(const ReplayBody&) = delete;

  // False: this was too much, and nothing is kept any longer.
  bool append(std::string_view framed);
  std::size_t size() const { return size_; }
  // What follows so many bytes, as far as it lies in one place. It stays there until an overflow.
  std::string_view behind(std::size_t bytes) const;
  bool overflowed() const { return overflowed_; }

  static constexpr std::size_t kMost = 256 * 1024;

 private:
  static constexpr std::size_t kBlock = 16 * 1024;

  bool count(std::size_t bytes);

  ReplayRoom& room_;
  std::size_t taken_ = 0;
  bool overflowed_ = false;
  std::size_t size_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_;
};

}  // namespace weir
