#include "tests/support/fake_upstream.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "tests/support/arrival_time.h"

namespace weir::test {

using std::chrono::steady_clock;

namespace {

// Three words with one space between each two.
void parse_request_line(const std::string& line, Received& request) {
  std::istringstream words(line);
  words >> request.method >> request.target >> request.version;
  if (line != request.method + " " + request.target + " " + request.version ||
      !request.version.starts_with("HTTP/1.")) {
    throw MalformedMessage("bad request line '" + line + "'");
  }
}

}  // namespace

std::optional<Received> UpstreamConnection::read_head() {
  const std::optional<Head> head = test::read_head(socket_);
  if (!head) {
    upstream_.record_closing(number_, socket_.ending());
    return std::nullopt;
  }
  Received request;
  request.arrived = socket_.last_arrival();
  request.connection = number_;
  request.raw_head = head->raw;
  request.fields = head->fields;
  parse_request_line(head->start_line, request);
  last_request_ = upstream_.record(request);
  return request;
}

bool UpstreamConnection::read_body() {
  const Fields fields = upstream_.request(last_request_).fields;
  const Body body = test::read_body(socket_, fields, framing_of(fields, Framing::none));
  upstream_.record_body(last_request_, body);
  if (!body.complete) upstream_.record_closing(number_, socket_.ending());
  return body.complete;
}

std::optional<Received> UpstreamConnection::read_request() {
  if (!read_head() || !read_body()) return std::nullopt;
  return upstream_.request(last_request_);
}

void UpstreamConnection::wait(const Gate& gate) {
  std::array<pollfd, 2> watched{pollfd{gate.fd(), POLLIN, 0},
                                pollfd{upstream_.stop_.fd(), POLLIN, 0}};
  int ready;
  do {
    ready = ::poll(watched.data(), watched.size(), static_cast<int>(patience.count()));
  } while (ready < 0 && errno == EINTR);
  if (watched[1].revents != 0) throw Stopped();
  if (ready == 0) throw TimedOut("an upstream's gate was never opened");
}

void UpstreamConnection::wait_for_peer_to_leave() {
  upstream_.record_closing(number_, socket_.wait_for_end());
}

FakeUpstream::FakeUpstream(Script script, Start start, int receive_buffer)
    : script_(std::move(script)),
      receive_buffer_(receive_buffer),
      reservation_(bind_loopback()),
      port_(port_of(reservation_)) {
  if (start == Start::listening) listen();
}

FakeUpstream::~FakeUpstream() {
  refuse();
  stop_.open();
  for (std::thread& thread : threads_) thread.join();
}

void FakeUpstream::listen() {
  Descriptor listener = bind_loopback(port_);
  note_arrivals(listener.get());
  if (receive_buffer_ > 0) {  // what it accepts inherits this
    ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_, sizeof receive_buffer_);
  }
  if (::listen(listener.get(), SOMAXCONN) != 0) throw std::runtime_error("listen");
  stop_accepting_.emplace();
  acceptor_ = std::thread([this, stop_fd = stop_accepting_->fd(), owned = std::move(listener)] {
    accept_connections(owned.get(), stop_fd);
  });
}

void FakeUpstream::refuse() {
  if (!acceptor_.joinable()) return;
  stop_accepting_->open();
  acceptor_.join();
}

void FakeUpstream::accept_connections(int listener, int stop_fd) {
  for (;;) {
    std::array<pollfd, 2> watched{pollfd{listener, POLLIN, 0}, pollfd{stop_fd, POLLIN, 0}};
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    if (watched[1].revents != 0) return;
    Descriptor accepted(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted.get() < 0) continue;
    const int on = 1;
    ::setsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock(mutex_);
    const int number = ++connections_;
    threads_.emplace_back(
        [this, number, fd = std::move(accepted)]() mutable { run(number, std::move(fd)); });
    changed_.notify_all();
  }
}

void FakeUpstream::run(int number, Descriptor fd) {
  UpstreamConnection connection(*this, number, Socket(std::move(fd), stop_.fd()));
  try {
    script_(connection);
    if (connection.socket_.is_open()) connection.wait_for_peer_to_leave();
  } catch (const Stopped&) {
    // The test is over.
  } catch (const std::exception& error) {
    ADD_FAILURE() << "the upstream's connection " << number << ": " << error.what();
  }
}

std::size_t FakeUpstream::record(Received request) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(std::move(request));
  changed_.notify_all();
  return requests_.size() - 1;
}

void FakeUpstream::record_body(std::size_t request, Body body) {
  const std::lock_guard lock(mutex_);
  requests_[request].body = std::move(body.bytes);
  requests_[request].body_complete = body.complete;
  requests_[request].trailers = std::move(body.trailers);
  changed_.notify_all();
}

void FakeUpstream::record_closing(int connection, Ending how) {
  const std::lock_guard lock(mutex_);
  closings_.try_emplace(connection, Closing{how, steady_clock::now()});
  changed_.notify_all();
}

Received FakeUpstream::request(std::size_t number) const {
  std::lock_guard lock(mutex_);
  return requests_[number];
}

std::vector<Received> FakeUpstream::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::vector<std::string> FakeUpstream::targets() const {
  std::vector<std::string> targets;
  for (const Received& request : requests()) targets.push_back(request.target);
  return targets;
}

int FakeUpstream::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

std::vector<Received> FakeUpstream::wait_for_requests(std::size_t count) const {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return requests_.size() >= count; })) {
    throw TimedOut("the upstream got " + std::to_string(requests_.size()) + " requests, not " +
                   std::to_string(count));
  }
  return requests_;
}

Closing FakeUpstream::wait_for_closing(int connection) const {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return closings_.contains(connection); })) {
    throw TimedOut("the upstream's connection " + std::to_string(connection) + " was never closed");
  }
  return closings_.at(connection);
}

FullBacklog::FullBacklog() : listener_(bind_loopback()), port_(port_of(listener_)) {
  if (::listen(listener_.get(), 0) != 0) throw std::runtime_error("listen");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (;;) {
    queued_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int fd = queued_.back().get();
    ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    pollfd connecting{fd, POLLOUT, 0};
    if (::poll(&connecting, 1, 100) == 0) return;
  }
}

}  // namespace weir::test
