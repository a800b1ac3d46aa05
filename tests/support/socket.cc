#include "tests/support/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ostream>
#include <utility>

#include "tests/support/arrival_time.h"

namespace weir::test {
namespace {

using std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

int milliseconds_until(Instant deadline) {
  const auto left = std::chrono::ceil<Span>(deadline - steady_clock::now());
  return static_cast<int>(std::max<Span::rep>(left.count(), 0));
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void set_option(int fd, int level, int option, int value) {
  if (::setsockopt(fd, level, option, &value, sizeof value) != 0) fail("setsockopt");
}

}  // namespace

std::ostream& operator<<(std::ostream& out, Ending ending) {
  constexpr std::array names{"open", "fin", "reset"};
  return out << names[static_cast<std::size_t>(ending)];
}

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Descriptor::~Descriptor() { close(); }

void Descriptor::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Gate::Gate() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_.get() < 0) fail("eventfd");
}

void Gate::open() {
  const std::uint64_t one = 1;
  if (::write(event_.get(), &one, sizeof one) != sizeof one) fail("eventfd write");
}

void Gate::wait(Span timeout) const {
  const Instant deadline = steady_clock::now() + timeout;
  pollfd event{event_.get(), POLLIN, 0};
  int ready;
  while ((ready = ::poll(&event, 1, milliseconds_until(deadline))) < 0 && errno == EINTR) {
  }
  if (ready == 0) throw TimedOut("a gate was never opened");
}

void Socket::await(short events, Instant deadline) {
  if (fd_.get() < 0) throw std::logic_error("the socket was closed by its own side");
  for (;;) {
    std::array<pollfd, 2> watched{pollfd{fd_.get(), events, 0}, pollfd{wake_fd_, POLLIN, 0}};
    const int ready = ::poll(watched.data(), watched.size(), milliseconds_until(deadline));
    if (ready < 0 && errno != EINTR) fail("poll");
    if (ready < 0) continue;
    if (watched[1].revents != 0) throw Stopped();
    if (ready == 0) {
      throw TimedOut("nothing happened on a connection; unread so far: '" + buffer_.substr(0, 300) +
                     "'");
    }
    return;
  }
}

bool Socket::fill(Instant deadline) {
  if (ending_ != Ending::open) return false;
  await(POLLIN, deadline);
  std::array<char, 65536> piece;
  const ssize_t count = receive(fd_.get(), piece.data(), piece.size(), last_arrival_);
  if (count > 0) {
    buffer_.append(piece.data(), static_cast<std::size_t>(count));
    return true;
  }
  if (count < 0 && errno == EINTR) return true;
  ending_ = count == 0 ? Ending::fin : Ending::reset;
  return false;
}

std::string Socket::take(std::size_t count) {
  if (count >= buffer_.size()) return std::exchange(buffer_, {});
  std::string taken = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return taken;
}

bool Socket::send(std::string_view bytes, Span timeout) {
  return send_until_stuck(bytes, timeout) == bytes.size();
}

std::size_t Socket::send_until_stuck(std::string_view bytes, Span pause) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    try {
      await(POLLOUT, steady_clock::now() + pause);
    } catch (const TimedOut&) {
      return sent;
    }
    const ssize_t count =
        ::send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == ECONNRESET || errno == EPIPE) {
      // The kernel reports a reset once: to this call, not to the next read.
      if (errno == ECONNRESET && ending_ == Ending::open) ending_ = Ending::reset;
      return sent;
    } else if (errno != EAGAIN && errno != EINTR) {
      fail("send");
    }
  }
  return sent;
}

std::string Socket::read_exactly(std::size_t count, Span timeout) {
  while (buffer_.size() < count && fill(steady_clock::now() + timeout)) {
  }
  return take(count);
}

std::string Socket::read_through(std::string_view mark, Span timeout) {
  std::size_t found;
  while ((found = buffer_.find(mark)) == std::string::npos) {
    if (!fill(steady_clock::now() + timeout)) return take(buffer_.size());
  }
  return take(found + mark.size());
}

std::string Socket::read_to_end(Span timeout) {
  while (fill(steady_clock::now() + timeout)) {
  }
  return take(buffer_.size());
}

std::string Socket::read_some(Span timeout) {
  const Instant deadline = steady_clock::now() + timeout;
  while (buffer_.empty() && fill(deadline)) {
  }
  return take(buffer_.size());
}

Ending Socket::wait_for_end(Span timeout) {
  const Instant deadline = steady_clock::now() + timeout;
  while (fill(deadline)) buffer_.clear();
  return ending_;
}

bool Socket::quiet_for(Span span) {
  if (!buffer_.empty() || ending_ != Ending::open) return false;
  try {
    fill(steady_clock::now() + span);
    return false;
  } catch (const TimedOut&) {
    return true;
  }
}

void Socket::finish_sending() { ::shutdown(fd_.get(), SHUT_WR); }

void Socket::close() { fd_.close(); }

void Socket::reset() {
  if (fd_.get() < 0) return;
  const linger at_once{1, 0};
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) != 0)
    fail("SO_LINGER");
  fd_.close();
}

Descriptor bind_loopback(std::uint16_t port) {
  Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) fail("socket");
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  const sockaddr_in address = loopback(port);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail("bind");
  return fd;
}

std::uint16_t port_of(const Descriptor& bound) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(bound.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail("getsockname");
  return ntohs(address.sin_port);
}

Descriptor try_connect(std::uint16_t port, int receive_buffer) {
  Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) fail("socket");
  // Before connecting: the window is offered with the handshake.
  if (receive_buffer > 0) set_option(fd.get(), SOL_SOCKET, SO_RCVBUF, receive_buffer);
  const sockaddr_in address = loopback(port);
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ECONNREFUSED) return Descriptor();
    if (errno != EINTR) fail("connect");
  }
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  return fd;
}

}  // namespace weir::test
