#include "proxy/http/stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weir::http {

void Pieces::advance(std::size_t written) {
  while (first_ < count_ && written >= buffers_[first_].size()) written -= buffers_[first_++].size();
  if (first_ < count_) buffers_[first_] += written;
}

Stream::Stream(Loop& loop, asio::ip::tcp::socket socket)
    : loop_(loop),
      socket_(std::move(socket)),
      reader_(loop),
      read_deadline_([this] {
        read_expired_ = true;
        reader_.wake();
      }),
      write_deadline_([this] {
        write_expired_ = true;
        std::error_code ignored;
        socket_.cancel(ignored);
      }) {
  if (socket_.is_open()) set_up();
}

void Stream::set_up() {
  std::error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

Task<Stream::Status> Stream::connect(asio::ip::tcp::endpoint peer, std::chrono::milliseconds timeout) {
  std::error_code error;
  if (aborted_) co_return Status::aborted;
  socket_.open(peer.protocol(), error);
  if (error) co_return Status::reset;
  write_expired_ = false;
  loop_.deadlines().arm(write_deadline_, timeout);
  co_await socket_.async_connect(peer, asio::redirect_error(use_task, error));
  write_deadline_.disarm();
  if (aborted_) co_return Status::aborted;
  if (error) {
    std::error_code ignored;
    socket_.close(ignored);
    co_return write_expired_ ? Status::timed_out : Status::reset;
  }
  set_up();
  co_return Status::ok;
}

void Stream::watch() {
  if (reading_) return;
  if (size() == 0 && capacity_ > kInitialBuffer) resize(kInitialBuffer);
  make_room(kMaxBuffer);
  start_read();
}

void Stream::consume(std::size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_ && !reading_) begin_ = end_ = 0;
}

// Only where no read is under way, as that writes behind end_.
void Stream::make_room(std::size_t max_buffer) {
  if (capacity_ < max_buffer && (filled_ || capacity_ == 0)) {
    resize(std::min(std::max(capacity_ * 2, kInitialBuffer), max_buffer));
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), data(), size());
    end_ -= begin_;
    begin_ = 0;
  }
}

void Stream::resize(std::size_t capacity) {
  auto other = std::make_unique_for_overwrite<char[]>(capacity);
  if (size() > 0) std::memcpy(other.get(), data(), size());
  end_ -= begin_;
  begin_ = 0;
  buffer_ = std::move(other);
  capacity_ = capacity;
}

void Stream::start_read() {
  if (reading_ || ended() || end_ == capacity_ || !socket_.is_open()) return;
  reading_ = true;
  socket_.async_read_some(
      asio::buffer(buffer_.get() + end_, capacity_ - end_),
      [self = shared_from_this()](std::error_code error, std::size_t n) { self->on_read(error, n); });
}

void Stream::on_read(std::error_code error, std::size_t bytes) {
  reading_ = false;
  end_ += bytes;
  filled_ = end_ == capacity_;
  if (error) end_status_ = error == asio::error::eof ? Status::closed : Status::reset;
  if (reader_.waiting()) return reader_.wake_now();
  start_read();
  if (on_event_ && !aborted_) on_event_();
}

Task<Stream::Status> Stream::more(std::chrono::milliseconds timeout, std::size_t max_buffer) {
  const std::size_t had = size();
  read_expired_ = interrupted_ = false;
  if (!reading_) {
    make_room(max_buffer);
    if (end_ == capacity_) co_return Status::full;
    start_read();
  }
  set_read_timeout(timeout);
  while (size() == had && !ended() && !aborted_ && !interrupted_ && !read_expired_) {
    co_await reader_.wait();
  }
  read_deadline_.disarm();
  if (aborted_ || interrupted_) co_return Status::aborted;
  if (size() > had) co_return Status::ok;
  co_return ended() ? end_status_ : Status::timed_out;
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

Task<Stream::Status> Stream::write(Pieces pieces, std::chrono::milliseconds timeout) {
  std::error_code error;
  write_expired_ = false;
  while (!pieces.empty()) {
    if (aborted_) co_return Status::aborted;
    // Mostly the kernel takes all at once: then no event is waited for.
    std::size_t n = socket_.write_some(pieces, error);
    if (error == asio::error::would_block) {
      loop_.deadlines().arm(write_deadline_, timeout);
      n = co_await socket_.async_write_some(pieces, asio::redirect_error(use_task, error));
      write_deadline_.disarm();
    }
    if (error) {
      if (aborted_) co_return Status::aborted;
      co_return write_expired_ ? Status::timed_out : Status::reset;
    }
    sent_ += n;
    pieces.advance(n);
  }
  co_return Status::ok;
}

bool Stream::quiet_now() {
  char byte;
  return ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

void Stream::abort() {
  if (aborted_) return;
  aborted_ = true;
  close();
  reader_.wake();
}

void Stream::close() {
  std::error_code ignored;
  socket_.close(ignored);
}

void Stream::close_with_reset() {
  std::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

void Stream::shutdown_send() {
  std::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

}  // namespace weir::http
