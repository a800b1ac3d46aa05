#include "tests/cluster/recording_upstream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace weir::test {
namespace {

constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

}  // namespace

RecordingUpstream::RecordingUpstream(Slow slow)
    : slow_(std::move(slow)),
      listener_(bind_loopback()),
      port_(port_of(listener_)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
  if (::listen(listener_.get(), 4096) != 0) throw std::runtime_error("listen");
  for (const int fd : {listener_.get(), stop_.fd()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  thread_ = std::thread([this] { run(); });
}

RecordingUpstream::~RecordingUpstream() {
  stop_.open();
  thread_.join();
}

std::vector<Arrival> RecordingUpstream::arrivals(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  if (path.empty()) return arrivals_;
  std::vector<Arrival> some;
  for (const Arrival& arrival : arrivals_) {
    if (arrival.path == path) some.push_back(arrival);
  }
  return some;
}

std::size_t RecordingUpstream::count(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const Arrival& arrival : arrivals_) count += path.empty() || arrival.path == path;
  return count;
}

void RecordingUpstream::run() {
  std::array<epoll_event, 256> events;
  for (;;) {
    int timeout = -1;
    if (!due_.empty()) {
      const auto left = due_.top().at - std::chrono::steady_clock::now();
      timeout = std::max(0, static_cast<int>(std::chrono::ceil<Span>(left).count()));
    }
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == stop_.fd()) return;
      fd == listener_.get() ? accept_all() : read(fd);
    }
    answer_due();
  }
}

void RecordingUpstream::accept_all() {
  for (;;) {
    Descriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.get() < 0) return;
    const int one = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd.get()}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event);
    const int number = fd.get();
    connections_[number].fd = std::move(fd);
  }
}

void RecordingUpstream::read(int fd) {
  Connection& connection = connections_.at(fd);
  const auto serving_before = connection.serving;
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t count = ::read(fd, piece.data(), piece.size());
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      // A connection that was accepted late, behind what came on others since, may have been closed
      // before its request was read: that was served for no time at all.
      if (connection.serving != serving_before && connection.serving) {
        const std::lock_guard lock(mutex_);
        Arrival& arrival = arrivals_[*std::exchange(connection.serving, std::nullopt)];
        arrival.ended = arrival.at;
      }
      return drop(fd);
    }
    connection.received.append(piece.data(), static_cast<std::size_t>(count));
    take_requests(fd, connection);
  }
}

// Weir sends the next request on a connection only when the last one was answered.
void RecordingUpstream::take_requests(int fd, Connection& connection) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const auto end = connection.received.find(kEnd);
  if (end == std::string::npos) return;
  const std::string head = connection.received.substr(0, end);
  connection.received.erase(0, end + kEnd.size());
  const auto target_at = head.find(' ') + 1;
  const std::string target = head.substr(target_at, head.find(' ', target_at) - target_at);
  const auto query = target.find('?');
  Arrival arrival{target.substr(0, query),
                  query == std::string::npos ? "" : target.substr(query + 1),
                  std::chrono::steady_clock::now(), std::chrono::system_clock::now(), std::nullopt};
  const bool slow = slow_.takes > Span{0} && arrival.path.starts_with(slow_.path);
  const Instant at = arrival.at;
  {
    const std::lock_guard lock(mutex_);
    connection.serving = arrivals_.size();
    arrivals_.push_back(std::move(arrival));
  }
  if (slow) {
    // Multiples of the golden ratio lie evenly.
    const double part = std::fmod(static_cast<double>(*connection.serving) * 0.618034, 1);
    const auto more = std::chrono::duration_cast<Span>(slow_.spread * part);
    due_.push({at + slow_.takes + more, fd, *connection.serving});
  } else {
    answer(fd, connection);
  }
}

// The request has ended before its answer goes out: afterwards its unit may be another's.
void RecordingUpstream::answer(int fd, Connection& connection) {
  {
    const std::lock_guard lock(mutex_);
    arrivals_[*connection.serving].ended = std::chrono::steady_clock::now();
  }
  connection.serving.reset();
  // So few bytes always fit.
  if (::send(fd, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL) < 0) return;
}

void RecordingUpstream::answer_due() {
  const Instant now = std::chrono::steady_clock::now();
  while (!due_.empty() && due_.top().at <= now) {
    const Answering next = due_.top();
    due_.pop();
    const auto found = connections_.find(next.fd);
    if (found == connections_.end() || found->second.serving != next.arrival) continue;
    answer(next.fd, found->second);
  }
}

void RecordingUpstream::drop(int fd) {
  if (const auto serving = connections_.at(fd).serving) {
    const std::lock_guard lock(mutex_);
    arrivals_[*serving].ended = std::chrono::steady_clock::now();
  }
  // By hand: a child that is just being forked may keep it open for a moment.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  connections_.erase(fd);
}

}  // namespace weir::test
