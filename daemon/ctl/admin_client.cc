#include "daemon/ctl/admin_client.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace weir::ctl {
namespace {

constexpr timeval kPatience{5, 0};  // for each step: the connection, the next bytes
constexpr const char* kPort = "9464";

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

std::pair<std::string, std::string> host_and_port(const std::string& admin) {
  if (admin.starts_with('[')) {
    const std::size_t end = admin.find(']');
    const bool port = end != admin.npos && admin.substr(end + 1).starts_with(':');
    return {admin.substr(1, end - 1), port ? admin.substr(end + 2) : kPort};
  }
  const std::size_t colon = admin.rfind(':');
  if (colon == admin.npos) return {admin, kPort};
  return {admin.substr(0, colon), admin.substr(colon + 1)};
}

// Empty: connected.
std::string connect_to(const addrinfo& address, int fd) {
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  if (::connect(fd, address.ai_addr, address.ai_addrlen) == 0) return {};
  return errno == EINPROGRESS ? "it takes too long to connect" : std::strerror(errno);
}

bool send_all(int fd, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

// All that comes until the other side closes.
bool receive_all(int fd, std::string& text) {
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t n = ::recv(fd, piece.data(), piece.size(), 0);
    if (n < 0) return false;
    if (n == 0) return true;
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
}

Answer parse(const std::string& text) {
  const std::size_t end = text.find("\r\n\r\n");
  Answer answer;
  if (text.starts_with("HTTP/1.") && end != text.npos && text.size() > 12) {
    std::from_chars(text.data() + 9, text.data() + 12, answer.status);
  }
  if (answer.status == 0) return {0, "what answers there does not speak HTTP", {}};
  answer.body = text.substr(end + 4);
  return answer;
}

Answer exchange(int fd, const std::string& page) {
  std::string text;
  if (!send_all(fd, "GET " + page + " HTTP/1.0\r\n\r\n") || !receive_all(fd, text)) {
    return {0, errno == EAGAIN ? "no answer in time" : std::strerror(errno), {}};
  }
  return parse(text);
}

}  // namespace

Answer ask(const std::string& admin, const std::string& page) {
  const auto [host, port] = host_and_port(admin);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) return {0, ::gai_strerror(error), {}};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::string fault;
  for (const addrinfo* address = list; address; address = address->ai_next) {
    const Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    fault = connect_to(*address, socket.fd());
    if (fault.empty()) return exchange(socket.fd(), page);
  }
  return {0, fault, {}};
}

}  // namespace weir::ctl
