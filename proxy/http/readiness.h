#pragma once

// Tells the streams and listeners of one loop when their sockets may be read or written. An epoll
// set of its own, which Asio watches as one descriptor: edges are reported once per socket and
// batch, so that a small exchange costs one read and one write on each side. (Asio's own reads try
// at once, find nothing and only then wait: two system calls of six per request.) Owned by its
// loop's thread.

#include <sys/epoll.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

namespace weir::http {

class Readiness {
 public:
  // One descriptor's place in the set. `ready` is called with EPOLL* flags, and may destroy the
  // entry or any other.
  class Entry {
   public:
    using Ready = void (*)(void* owner, unsigned events);
    Entry(Ready ready, void* owner) : ready_(ready), owner_(owner) {}
    ~Entry() { remove(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    // Reports edges of reading, writing, and the peer's closing, from now on.
    void add(Readiness& set, int descriptor);
    // Before the descriptor is closed.
    void remove();

   private:
    friend class Readiness;
    const Ready ready_;
    void* const owner_;
    Readiness* set_ = nullptr;
    int descriptor_ = -1;
  };

  explicit Readiness(asio::io_context& context);

 private:
  void wait();
  void dispatch();

  static constexpr int kBatch = 256;

  asio::posix::stream_descriptor set_;
  std::array<epoll_event, kBatch> batch_;
  int next_ = 0, count_ = 0;  // of the batch that is being dispatched
};

}  // namespace weir::http
