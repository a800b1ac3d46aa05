#pragma once

// One TCP connection, to a client or to a server. Bytes are read only when more of them are asked
// for; that the peer leaves is noticed at once whatever the owner is doing. Owned by its loop's
// thread; one coroutine may read while another writes.

#include <sys/uio.h>

#include <array>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "proxy/http/loop.h"

namespace weir::http {

// Up to four runs of bytes, written as one.
class Pieces {
 public:
  void add(std::string_view bytes) {
    if (!bytes.empty()) runs_[count_++] = {const_cast<char*>(bytes.data()), bytes.size()};
  }
  bool empty() const { return first_ == count_; }
  void advance(std::size_t written);
  iovec* begin() { return runs_.data() + first_; }
  std::size_t count() const { return count_ - first_; }

 private:
  std::array<iovec, 4> runs_;
  std::size_t first_ = 0, count_ = 0;
};

class Stream {
 public:
  enum class Status {
    ok,
    closed,     // the peer has sent all it will
    reset,      // the connection broke, or could not be made
    exhausted,  // it could not be made: this process, or machine, has no socket or port for it
    timed_out,  // nothing moved for as long as was allowed
    aborted,    // abort() or interrupt() was called
    full,       // no room: consume first
  };

  // Takes over a connected socket that does not block; -1: none yet.
  Stream(Loop& loop, int socket);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Task<Status> connect(asio::ip::tcp::endpoint peer, std::chrono::milliseconds timeout);
  // Where the peer is not known yet: until go_on() (ok), abort(), or the timeout.
  Task<Status> wait_for_peer(std::chrono::milliseconds timeout);
  void go_on() { writer_.wake(); }

  // What came and was not consumed yet. It stays where it is until more() is called.
  char* data() { return buffer_.get() + begin_; }
  std::size_t size() const { return end_ - begin_; }
  std::string_view received() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t bytes);
  // Waits until there is more of it than now; a timeout of zero is none. `max_buffer` bounds what
  // is kept unconsumed.
  Task<Status> more(std::chrono::milliseconds timeout, std::size_t max_buffer = kMaxBuffer);
  // Ends a more() under way with Status::aborted; the connection stays.
  void interrupt();
  // Gives the more() under way another deadline; zero: none. Where nobody waits, its end is an
  // event.
  void set_read_timeout(std::chrono::milliseconds timeout);
  // Gives the buffer back while the connection has nothing to say. A more() under way, and the next
  // one, takes another only when there is something to read.
  void release_buffer();

  Task<Status> write(Pieces pieces, std::chrono::milliseconds timeout);
  // What goes out at once, and is taken out of `pieces`. Status::full: nothing does.
  Status write_now(Pieces& pieces);
  std::uint64_t sent() const { return sent_; }  // bytes that the kernel has taken

  // Called when something arrives while nobody waits in more(), and in any case when the peer
  // leaves.
  void on_event(std::function<void()> event) { on_event_ = std::move(event); }
  // The peer has closed its side or broken the connection; there may still be bytes to read.
  bool peer_left() const { return peer_left_; }
  // The peer has sent nothing but what was consumed, and stays.
  bool quiet() const;
  // The same for what may have come just now: asks the kernel.
  bool nothing_unread() const;
  bool open() const { return socket_ >= 0; }
  int native_handle() const { return socket_; }

  // Ends whatever waits, with Status::aborted, and closes.
  void abort();
  bool aborted() const { return aborted_; }
  void close();
  // Closes so that the peer sees a reset: it must not take what it got for whole.
  void close_with_reset();
  void shutdown_send();

  Loop& loop() { return loop_; }

  static constexpr std::size_t kMaxBuffer = Loop::kLargeBuffer;

 private:
  static void ready(void* self, unsigned events);
  void on_ready(unsigned events);
  void set_up();
  void receive();
  void make_room(std::size_t max_buffer);
  void take_buffer(std::size_t capacity);
  void drop_buffer();
  Task<void> wait_writable(std::chrono::milliseconds timeout);

  Loop& loop_;
  int socket_;
  Readiness::Entry readiness_{&Stream::ready, this};
  std::unique_ptr<char[]> buffer_;  // the loop's, but for one that is larger than its
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
  std::uint64_t sent_ = 0;
  bool readable_ = true;  // as far as the last edge and the last read tell
  bool filled_ = false;   // by the last read: the peer has more than the buffer takes
  bool read_expired_ = false;
  bool write_expired_ = false;
  bool interrupted_ = false;
  bool aborted_ = false;
  bool peer_left_ = false;
  Status read_end_ = Status::ok;  // not ok: reading is over, and why
  Wakeup reader_, writer_;
  Deadlines::Entry read_deadline_, write_deadline_;
  std::function<void()> on_event_;
};

}  // namespace weir::http
