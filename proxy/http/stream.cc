#include "proxy/http/stream.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weir::http {
namespace {

// What keeps us from making any connection, or any to that address, whatever the peer would say.
bool is_exhaustion(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == EADDRNOTAVAIL;
}

}  // namespace

void Pieces::advance(std::size_t written) {
  while (first_ < count_ && written >= runs_[first_].iov_len) written -= runs_[first_++].iov_len;
  if (first_ == count_) return;
  runs_[first_].iov_base = static_cast<char*>(runs_[first_].iov_base) + written;
  runs_[first_].iov_len -= written;
}

Stream::Stream(Loop& loop, int socket)
    : loop_(loop),
      socket_(socket),
      reader_(loop),
      writer_(loop),
      read_deadline_([this] {
        read_expired_ = true;
        if (reader_.waiting()) {
          reader_.wake();
        } else if (on_event_) {
          on_event_();
        }
      }),
      write_deadline_([this] {
        write_expired_ = true;
        writer_.wake();
      }) {
  if (socket_ >= 0) set_up();
}

Stream::~Stream() {
  close();
  drop_buffer();
}

void Stream::set_up() {
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  readiness_.add(loop_.readiness(), socket_);
}

void Stream::ready(void* self, unsigned events) { static_cast<Stream*>(self)->on_ready(events); }

// The owner may be gone when a wake_now() or on_event_() returns: nothing follows them.
void Stream::on_ready(unsigned events) {
  const bool ended = events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP);
  if (ended) peer_left_ = true;
  const bool read_side = ended || events & EPOLLIN;
  if (read_side) readable_ = true;
  if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
    if (!read_side) return writer_.wake_now();
    writer_.wake();
  }
  if (!read_side) return;
  if (reader_.waiting()) {
    if (!ended || !on_event_) return reader_.wake_now();
    // Who reads may have what it wants with these bytes and never come to the end behind them.
    reader_.wake();
  }
  if (on_event_) on_event_();
}

Task<Stream::Status> Stream::connect(asio::ip::tcp::endpoint peer,
                                     std::chrono::milliseconds timeout) {
  if (aborted_) co_return Status::aborted;
  close();
  socket_ = ::socket(peer.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) co_return is_exhaustion(errno) ? Status::exhausted : Status::reset;
  peer_left_ = write_expired_ = false;
  int error = ::connect(socket_, peer.data(), static_cast<socklen_t>(peer.size())) == 0 ? 0 : errno;
  // Only now: an unconnected socket is reported as hung up.
  set_up();
  if (error == EINPROGRESS) {
    co_await wait_writable(timeout);
    if (aborted_) co_return Status::aborted;
    socklen_t length = sizeof error;
    ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == 0 && !write_expired_) co_return Status::ok;
  close();
  if (write_expired_) co_return Status::timed_out;
  co_return is_exhaustion(error) ? Status::exhausted : Status::reset;
}

Task<Stream::Status> Stream::wait_for_peer(std::chrono::milliseconds timeout) {
  if (!aborted_) co_await wait_writable(timeout);
  if (aborted_) co_return Status::aborted;
  co_return write_expired_ ? Status::timed_out : Status::ok;
}

void Stream::consume(std::size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

// A buffer that one read filled is too small for what the peer sends, and is exchanged for a large
// one. Only a head may take more than that.
void Stream::make_room(std::size_t max_buffer) {
  if (capacity_ == 0) {
    take_buffer(Loop::kBuffer);
  } else if (capacity_ < max_buffer && filled_) {
    take_buffer(capacity_ < Loop::kLargeBuffer ? Loop::kLargeBuffer
                                               : std::min(capacity_ * 2, max_buffer));
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), data(), size());
    end_ -= begin_;
    begin_ = 0;
  }
}

void Stream::take_buffer(std::size_t capacity) {
  auto buffer = capacity <= Loop::kLargeBuffer ? loop_.take_buffer(capacity)
                                               : std::make_unique_for_overwrite<char[]>(capacity);
  const std::size_t kept = size();
  if (kept > 0) std::memcpy(buffer.get(), data(), kept);
  drop_buffer();
  buffer_ = std::move(buffer);
  capacity_ = capacity;
  end_ = kept;
}

void Stream::release_buffer() {
  if (size() > 0) return;
  drop_buffer();
  filled_ = false;
}

void Stream::drop_buffer() {
  if (buffer_ && capacity_ <= Loop::kLargeBuffer) {
    loop_.return_buffer(std::move(buffer_), capacity_);
  }
  buffer_.reset();
  capacity_ = begin_ = end_ = 0;
}

// Takes what is there, once. Less than there was room for means that nothing is left, unless the
// peer has closed behind it.
void Stream::receive() {
  const std::size_t room = capacity_ - end_;
  const ssize_t n = ::recv(socket_, buffer_.get() + end_, room, 0);
  if (n > 0) {
    end_ += static_cast<std::size_t>(n);
    filled_ = static_cast<std::size_t>(n) == room;
    readable_ = filled_ || peer_left_;
  } else if (n == 0) {
    read_end_ = Status::closed;
    peer_left_ = true;
  } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
    readable_ = errno == EINTR;
  } else {
    read_end_ = Status::reset;
    peer_left_ = true;
  }
}

Task<Stream::Status> Stream::more(std::chrono::milliseconds timeout, std::size_t max_buffer) {
  if (aborted_ || socket_ < 0) co_return Status::aborted;
  if (read_end_ != Status::ok) co_return read_end_;
  const bool without_buffer = capacity_ == 0;
  if (!without_buffer) make_room(max_buffer);
  if (end_ == capacity_ && !without_buffer) co_return Status::full;
  const std::size_t had = size();
  read_expired_ = interrupted_ = false;
  read_deadline_.disarm();  // one that was set while nobody waited is not this one's
  for (;;) {
    if (readable_) {
      if (capacity_ == 0) make_room(max_buffer);
      receive();
    }
    if (size() > had) break;
    if (read_end_ != Status::ok) break;
    if (readable_) continue;
    if (without_buffer) release_buffer();  // nothing to read: others may have use for it
    if (!read_deadline_.armed()) set_read_timeout(timeout);
    co_await reader_.wait();
    if (aborted_ || interrupted_ || read_expired_ || socket_ < 0) break;
  }
  read_deadline_.disarm();
  if (aborted_ || interrupted_ || socket_ < 0) co_return Status::aborted;
  if (size() > had) co_return Status::ok;
  co_return read_end_ != Status::ok ? read_end_ : Status::timed_out;
}

void Stream::interrupt() {
  interrupted_ = true;
  reader_.wake();
}

void Stream::set_read_timeout(std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) {
    loop_.deadlines().arm(read_deadline_, timeout);
  } else {
    read_deadline_.disarm();
  }
}

Task<void> Stream::wait_writable(std::chrono::milliseconds timeout) {
  write_expired_ = false;
  loop_.deadlines().arm(write_deadline_, timeout);
  co_await writer_.wait();
  write_deadline_.disarm();
}

Stream::Status Stream::write_now(Pieces& pieces) {
  for (;;) {
    if (aborted_ || socket_ < 0) return Status::aborted;
    msghdr message{};
    message.msg_iov = pieces.begin();
    message.msg_iovlen = pieces.count();
    const ssize_t n = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (n >= 0) {
      sent_ += static_cast<std::size_t>(n);
      pieces.advance(static_cast<std::size_t>(n));
      return Status::ok;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Status::full;
    if (errno != EINTR) return Status::reset;
  }
}

Task<Stream::Status> Stream::write(Pieces pieces, std::chrono::milliseconds timeout) {
  while (!pieces.empty()) {
    const Status status = write_now(pieces);
    if (status == Status::ok) continue;
    if (status != Status::full) co_return status;
    co_await wait_writable(timeout);
    if (write_expired_) co_return Status::timed_out;
  }
  co_return Status::ok;
}

bool Stream::quiet() const {
  return open() && size() == 0 && !peer_left_ && (!readable_ || nothing_unread());
}

bool Stream::nothing_unread() const {
  char byte;
  return ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

void Stream::abort() {
  if (aborted_) return;
  aborted_ = true;
  close();
  reader_.wake();
  writer_.wake();
}

void Stream::close() {
  if (socket_ < 0) return;
  readiness_.remove();
  ::close(socket_);
  socket_ = -1;
}

void Stream::close_with_reset() {
  if (socket_ < 0) return;
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

void Stream::shutdown_send() {
  if (socket_ >= 0) ::shutdown(socket_, SHUT_WR);
}

}  // namespace weir::http
