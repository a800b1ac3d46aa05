#pragma once

// One TCP connection, to a client or to a server. Whoever has taken what came lets it watch() the peer,
// which keeps a read under way: a peer that leaves is noticed at once whatever the owner is doing,
// and since that read is also the one for the next message, it costs no system call. Owned by its
// loop's thread; shared_ptr because a read under way outlives the owner's interest.

#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/redirect_error.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "proxy/http/loop.h"

namespace weir::http {

// Up to four buffers, written as one.
class Pieces {
 public:
  void add(std::string_view bytes) {
    if (!bytes.empty()) buffers_[count_++] = asio::buffer(bytes.data(), bytes.size());
  }
  bool empty() const { return first_ == count_; }
  void advance(std::size_t written);
  const asio::const_buffer* begin() const { return buffers_ + first_; }
  const asio::const_buffer* end() const { return buffers_ + count_; }

 private:
  asio::const_buffer buffers_[4];
  std::size_t first_ = 0, count_ = 0;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  enum class Status {
    ok,
    closed,     // the peer has sent all it will
    reset,      // the connection broke
    timed_out,  // nothing moved for as long as was allowed
    aborted,    // abort() or interrupt() was called
    full,       // no room: consume first
  };

  Stream(Loop& loop, asio::ip::tcp::socket socket);

  Task<Status> connect(asio::ip::tcp::endpoint peer, std::chrono::milliseconds timeout);
  // Keeps a read under way while the owner does something else.
  void watch();

  // What came and was not consumed yet. It stays where it is until more() or watch() is called.
  char* data() { return buffer_.get() + begin_; }
  std::size_t size() const { return end_ - begin_; }
  std::string_view received() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t bytes);
  // Waits until there is more of it than now; a timeout of zero is none. `max_buffer` bounds what is
  // kept unconsumed.
  Task<Status> more(std::chrono::milliseconds timeout, std::size_t max_buffer = kMaxBuffer);
  // Ends a more() under way with Status::aborted; the connection stays.
  void interrupt();
  // Gives the more() under way another deadline; zero: none.
  void set_read_timeout(std::chrono::milliseconds timeout);

  Task<Status> write(Pieces pieces, std::chrono::milliseconds timeout);

  std::uint64_t sent() const { return sent_; }  // bytes that the kernel has taken

  // Called when something arrives, or the peer leaves, while nobody waits in more().
  void on_event(std::function<void()> event) { on_event_ = std::move(event); }
  // The peer has sent all it will, or the connection broke.
  bool ended() const { return end_status_ != Status::ok; }
  // Asks the kernel: no FIN and nothing unread is waiting.
  bool quiet_now();
  bool open() const { return socket_.is_open(); }

  // Ends whatever waits, with Status::aborted, and closes.
  void abort();
  bool aborted() const { return aborted_; }
  void close();
  // Closes so that the peer sees a reset: it must not take what it got for whole.
  void close_with_reset();
  void shutdown_send();
  asio::ip::tcp::socket& socket() { return socket_; }
  Loop& loop() { return loop_; }

  static constexpr std::size_t kMaxBuffer = 64 * 1024;

 private:
  static constexpr std::size_t kInitialBuffer = 2 * 1024;

  void set_up();
  void start_read();
  void make_room(std::size_t max_buffer);
  void resize(std::size_t capacity);
  void on_read(std::error_code error, std::size_t bytes);

  Loop& loop_;
  asio::ip::tcp::socket socket_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
  bool reading_ = false;
  bool filled_ = false;  // by the last read: the peer has more than the buffer takes
  bool read_expired_ = false;
  bool interrupted_ = false;
  bool write_expired_ = false;
  bool aborted_ = false;
  Status end_status_ = Status::ok;
  std::uint64_t sent_ = 0;
  Wakeup reader_;
  Deadlines::Entry read_deadline_;
  Deadlines::Entry write_deadline_;
  std::function<void()> on_event_;
};

}  // namespace weir::http
