#include "tests/cluster/load.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace weir::test {
namespace {

// One who was turned away or cut off asks again a little later.
constexpr Span kTurnedAway{50};

}  // namespace

Load::Load(const Doors& doors, std::vector<Stream> streams)
    : doors_(doors), streams_(std::move(streams)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = UINT64_MAX}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_.fd(), &event);
  // The doors take turns, so that no replica is asked much before the others.
  for (const Stream& stream : streams_) {
    for (int i = 0; i < stream.clients; ++i) {
      for (const std::size_t door : stream.doors) {
        clients_.push_back({.stream = &stream, .door = door, .fd = Descriptor(), .received = ""});
      }
    }
  }
  for (std::size_t i = 0; i < clients_.size(); ++i) again(i, Span{0});
  thread_ = std::thread([this] { run(); });
}

void Load::stop() {
  if (!thread_.joinable()) return;
  stop_.open();
  thread_.join();
  clients_.clear();
}

std::vector<Answered> Load::answers() const {
  const std::lock_guard lock(mutex_);
  return answers_;
}

int Load::count(int status, Instant since) const {
  const std::lock_guard lock(mutex_);
  int count = 0;
  for (const Answered& answer : answers_) count += answer.status == status && answer.at >= since;
  return count;
}

int Load::count_from(std::size_t door, int status, Instant since) const {
  const std::lock_guard lock(mutex_);
  int count = 0;
  for (const Answered& answer : answers_) {
    count += answer.door == door && answer.status == status && answer.at >= since;
  }
  return count;
}

void Load::again(std::size_t client, Span in) {
  due_.emplace(std::chrono::steady_clock::now() + in, client);
}

// A child that is just being forked may keep the connection open for a moment.
void Load::hang_up(Client& client) {
  if (client.fd.get() >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, client.fd.get(), nullptr);
  client.fd.close();
}

void Load::run() {
  std::array<epoll_event, 256> events;
  for (;;) {
    int timeout = -1;
    if (!due_.empty() || !patience_.empty()) {
      Instant next = due_.empty() ? Instant::max() : due_.begin()->first;
      if (!patience_.empty()) next = std::min(next, patience_.begin()->first);
      const auto left = next - std::chrono::steady_clock::now();
      timeout = std::max(0, static_cast<int>(std::chrono::ceil<Span>(left).count()));
    }
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t client = events[static_cast<std::size_t>(i)].data.u64;
      if (client == UINT64_MAX) return;
      read(client);
    }
    const Instant now = std::chrono::steady_clock::now();
    while (!due_.empty() && due_.begin()->first <= now) {
      const std::size_t client = due_.begin()->second;
      due_.erase(due_.begin());
      ask(client);
    }
    while (!patience_.empty() && patience_.begin()->first <= now) {
      const auto [at, client] = *patience_.begin();
      patience_.erase(patience_.begin());
      if (clients_[client].waiting && clients_[client].leaves_at == at) leave(client);
    }
  }
}

void Load::ask(std::size_t number) {
  Client& client = clients_[number];
  const std::uint16_t port = doors_.port(client.door);
  if (port != client.port) hang_up(client);
  if (port == 0) return again(number, kTurnedAway);
  if (client.fd.get() < 0) {
    try {
      client.fd = try_connect(port);
    } catch (const std::runtime_error&) {
      // It was killed while it accepted.
    }
    if (client.fd.get() < 0) return again(number, kTurnedAway);
    ::fcntl(client.fd.get(), F_SETFL, O_NONBLOCK);
    client.port = port;
    client.received.clear();
    epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, client.fd.get(), &event);
  }
  std::string target = client.stream->path;
  if (client.stream->distinct_paths > 1) {
    const auto count = static_cast<std::size_t>(client.stream->distinct_paths);
    target += "/" + std::to_string(next_path_++ % count);
  }
  const std::string request = "GET " + target + "?r" + std::to_string(client.door + 1) +
                              " HTTP/1.1\r\nHost: cluster\r\n\r\n";
  client.asked = std::chrono::steady_clock::now();
  client.waiting = true;
  if (client.stream->leaves > Span{0}) {
    const auto most = std::chrono::microseconds(client.stream->leaves).count();
    client.leaves_at = client.asked + std::chrono::microseconds{random_() % most};
    patience_.emplace(client.leaves_at, number);
  }
  // A connection that has just ended tells so when it is read.
  if (::send(client.fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return;
}

void Load::leave(std::size_t number) {
  hang_up(clients_[number]);
  note(clients_[number], 0);
  again(number, Span{1});
}

void Load::read(std::size_t number) {
  Client& client = clients_[number];
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t count = ::read(client.fd.get(), piece.data(), piece.size());
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      hang_up(client);
      // An idle client has its next request due already.
      if (!client.waiting) return;
      note(client, 0);
      return again(number, kTurnedAway);
    }
    client.received.append(piece.data(), static_cast<std::size_t>(count));
    if (take_answer(number)) return;
  }
}

bool Load::take_answer(std::size_t number) {
  Client& client = clients_[number];
  const std::string& text = client.received;
  const auto head_end = text.find("\r\n\r\n");
  if (head_end == std::string::npos) return false;
  const std::string_view head = std::string_view(text).substr(0, head_end);
  constexpr std::string_view kLength = "ontent-Length: ";
  const auto length_at = text.find(kLength);
  const std::size_t length =
      length_at < head_end ? std::stoul(text.substr(length_at + kLength.size())) : 0;
  if (text.size() < head_end + 4 + length) return false;
  const int status = std::stoi(text.substr(text.find(' ') + 1, 3));
  std::string reason;
  if (const auto at = text.find("\"reason\":\"", head_end); at != std::string::npos) {
    reason = text.substr(at + 10, text.find('"', at + 10) - at - 10);
  }
  const bool retry_after = head.find("Retry-After: ") != std::string_view::npos;
  const bool closes = head.find("onnection: close") != std::string_view::npos;
  note(client, status, std::move(reason), retry_after);
  client.received.clear();
  if (closes) hang_up(client);
  if (status != 200) {
    again(number, kTurnedAway);
  } else if (client.stream->pause > Span{0} || closes) {
    again(number, client.stream->pause);
  } else {
    ask(number);
  }
  return true;
}

void Load::note(Client& client, int status, std::string reason, bool retry_after) {
  client.waiting = false;
  const std::lock_guard lock(mutex_);
  answers_.push_back({client.door, status, client.asked, std::chrono::steady_clock::now(),
                      std::move(reason), retry_after});
}

}  // namespace weir::test
