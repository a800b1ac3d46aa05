#include "proxy/http/server.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/detached.hpp>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace weir::http {
namespace {

// Over the limit a connection still gets an answer, as long as these are few.
constexpr std::size_t kTurnedAwayAtOnce = 64;
// Out of file descriptors: nothing to do but wait until some come back.
constexpr std::chrono::milliseconds kAcceptPause{100};

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

// Binds and listens; -1 with errno set if that cannot be done.
int listen_on(const sockaddr* address, socklen_t length, int family, bool first) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!first) ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  bool bound = ::bind(fd, address, length) == 0;
  // Now that the address is ours alone, let our other listeners in.
  if (bound && first) bound = ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
  if (bound && ::listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

}  // namespace

std::vector<int> listen_shared(const std::string& host, const std::string& port,
                               std::size_t count) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found)) {
    throw std::runtime_error(host + ": " + ::gai_strerror(error));
  }
  sockaddr_storage address{};
  std::memcpy(&address, found->ai_addr, found->ai_addrlen);
  socklen_t length = found->ai_addrlen;
  const int family = found->ai_family;
  ::freeaddrinfo(found);

  std::vector<int> listeners;
  for (std::size_t i = 0; i < count; ++i) {
    const int fd = listen_on(reinterpret_cast<sockaddr*>(&address), length, family, i == 0);
    if (fd < 0) {
      const int error = errno;
      for (int other : listeners) ::close(other);
      fail(error, host + ":" + port);
    }
    listeners.push_back(fd);
    // Port 0 became a real one: the others are to share it.
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  }
  return listeners;
}

std::string local_address(int listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  const std::string text = address.ss_family == AF_INET6 ? "[" + std::string{host} + "]" : host;
  return text + ":" + port;
}

Server::Server(Loop& loop, int listener, std::atomic<std::size_t>& connections, Handler handler,
               Refused refused)
    : loop_(loop),
      listener_(listener),
      accept_again_([this] { accept(); }),
      total_(connections),
      handler_(std::move(handler)),
      refused_(std::move(refused)) {}

Server::~Server() {
  if (listener_ >= 0) ::close(listener_);
}

void Server::start() { readiness_.add(loop_.readiness(), listener_); }

void Server::ready(void* self, unsigned) { static_cast<Server*>(self)->accept(); }

void Server::accept() {
  while (listener_ >= 0) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      take(socket);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return loop_.deadlines().arm(accept_again_, kAcceptPause);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    }
  }
}

void Server::take(int socket) {
  const std::size_t open = total_.fetch_add(1) + 1;
  if (open > options_.limits.connections + kTurnedAwayAtOnce) {
    total_.fetch_sub(1);
    ::close(socket);
    return;
  }
  auto connection = std::make_shared<Connection>(loop_, socket, options_);
  connections_.insert(connection.get());
  auto work = open > options_.limits.connections ? turn_away(connection) : serve(connection);
  spawn(std::move(work), [this, connection] { forget(connection.get()); });
}

Task<void> Server::serve(std::shared_ptr<Connection> connection) {
  // GCC 12 miscompiles co_await in the condition of a do loop, hence this form.
  for (bool more = true; more;) {
    if (!co_await connection->read_request()) {
      if (connection->refused()) {
        refused_(*connection, *connection->refused());
        co_await connection->finish();
      }
      co_return;
    }
    if (draining_) connection->close_after_answer();
    co_await handler_(*connection);
    more = co_await connection->finish();
  }
}

Task<void> Server::turn_away(std::shared_ptr<Connection> connection) {
  if (!co_await connection->read_request()) co_return;
  connection->close_after_answer();
  LocalReply reply{Denial::queue_full, "all connections are in use"};
  co_await connection->reply(std::move(reply));
  refused_(*connection, Denial::queue_full);
  co_await connection->finish();
}

void Server::forget(Connection* connection) {
  connections_.erase(connection);
  total_.fetch_sub(1);
  // While the door is still open, drain() itself looks whether anybody is left.
  if (listener_ < 0 && connections_.empty() && on_drained_) on_drained_();
}

void Server::drain() {
  if (draining_) return;
  draining_ = true;
  accept();  // whom the kernel has already let in must not find the door shut
  readiness_.remove();
  accept_again_.disarm();
  ::close(listener_);
  listener_ = -1;
  for (Connection* connection : connections_) {
    // A request that has arrived but was not read yet is still served.
    if (connection->idle() && connection->stream().nothing_unread()) {
      connection->stream().abort();
    } else {
      connection->close_after_answer();
    }
  }
  if (connections_.empty() && on_drained_) on_drained_();
}

std::size_t Server::busy_connections() const {
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                                [](const Connection* c) { return !c->idle(); }));
}

void Server::abort() {
  for (Connection* connection : connections_) connection->abort();
}

}  // namespace weir::http
