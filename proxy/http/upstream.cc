#include "proxy/http/upstream.h"

#include <algorithm>
#include <utility>

namespace weir::http {
namespace {

using std::chrono::milliseconds;

// A server is passed over for this long after its first refusal, twice as long after each further
// one.
constexpr milliseconds kFirstPause{500};
constexpr milliseconds kLongestPause{30'000};
// Kept connections are closed before a server of ordinary settings (5 s and more) would close them:
// a request sent while its FIN is on the way is lost. Until then there are as many as were needed
// at once: one closed early would be made anew with the next burst, behind all others.
constexpr milliseconds kMaxIdle{4'000};
constexpr milliseconds kNever{0};
// How long the addresses of a name are taken to be right.
constexpr milliseconds kNameValid{10'000};

// Asks the system for the addresses of a name, beside the loop.
class Lookup {
 public:
  using Found = asio::ip::tcp::resolver::results_type;

  explicit Lookup(Loop& loop) : resolver_(loop.context()), over_(loop) {}

  // Empty: there are none to be had.
  Task<Found> find(const ServerAddress& address) {
    Found found;
    resolver_.async_resolve(address.host, std::to_string(address.port),
                            [&](std::error_code, const Found& results) {
                              found = results;
                              over_.wake_now();
                            });
    co_await over_.wait();
    co_return found;
  }

 private:
  asio::ip::tcp::resolver resolver_;
  Wakeup over_;
};

}  // namespace

Outbound::Outbound(Outbound&& other) noexcept { *this = std::move(other); }

Outbound& Outbound::operator=(Outbound&& other) noexcept {
  if (this == &other) return *this;
  release();
  upstream_ = std::exchange(other.upstream_, nullptr);
  server_ = other.server_;
  stream_ = std::move(other.stream_);
  reused_ = other.reused_;
  lacked_sockets_ = other.lacked_sockets_;
  return *this;
}

void Outbound::end() { std::exchange(upstream_, nullptr)->rotation_.ended(server_); }

void Outbound::keep() {
  upstream_->keep(server_, std::move(stream_));
  end();
}

void Outbound::release() {
  if (!upstream_) return;
  end();
  if (stream_) stream_->abort();
  stream_.reset();
}

int Rotation::pick(SteadyTime now, const std::vector<bool>& tried) const {
  int best = -1;
  const auto rank = [&](std::size_t i) {
    const Server& server = servers_[i];
    const bool passed_over = server.refusals > 0 && now < server.passed_over_until;
    return std::pair{passed_over ? server.passed_over_until : SteadyTime::min(), server.under_way};
  };
  for (std::size_t step = 1; step <= servers_.size(); ++step) {
    const std::size_t i = (last_ + step) % servers_.size();
    if (!tried.empty() && tried[i]) continue;
    if (best < 0 || rank(i) < rank(static_cast<std::size_t>(best))) best = static_cast<int>(i);
  }
  return best;
}

void Rotation::began(std::size_t server) {
  ++servers_[server].under_way;
  last_ = server;
}

void Rotation::refused(std::size_t index, SteadyTime began, SteadyTime now) {
  Server& server = servers_[index];
  if (server.refusals > 0 && began < server.passed_over_until) return;
  const int doublings = std::min(server.refusals++, 10);
  server.passed_over_until = now + std::min(kFirstPause * (1 << doublings), kLongestPause);
}

Upstream::Upstream(Loop& loop, const UpstreamOptions& options)
    : loop_(loop), options_(options), rotation_(options.servers.size()) {
  for (const ServerAddress& address : options_.servers) {
    Server& server = servers_.emplace_back();
    server.address = address;
    std::error_code not_literal;
    const auto literal = asio::ip::make_address(address.host, not_literal);
    if (!not_literal) {
      server.endpoints.emplace_back(literal, address.port);
      server.resolved_at = SteadyTime::max();
    }
  }
}

Upstream::~Upstream() {
  for (Server& server : servers_) {
    for (const auto& stream : server.idle) {
      stream->on_event(nullptr);
      stream->close();
    }
  }
}

// Counts as under way from here on, so that those who come meanwhile look elsewhere.
Outbound Upstream::begin(std::size_t server, Used used) {
  if (used) (*used)[server] = true;
  Outbound result;
  result.upstream_ = this;
  result.server_ = server;
  rotation_.began(server);
  return result;
}

int Upstream::pick(const std::vector<bool>& tried, Used used) const {
  if (used) {
    std::vector<bool> passed_over = *used;
    for (std::size_t i = 0; i < tried.size(); ++i) passed_over[i] = passed_over[i] || tried[i];
    const int other = rotation_.pick(loop_.deadlines().now(), passed_over);
    if (other >= 0) return other;
  }
  return rotation_.pick(loop_.deadlines().now(), tried);
}

Outbound Upstream::take_idle(Used used) {
  const auto server = static_cast<std::size_t>(pick({}, used));
  auto& idle = servers_[server].idle;
  auto& places = servers_[server].places;
  if (idle.empty()) return {};
  Outbound result = begin(server, used);
  result.stream_ = std::move(idle.back());
  result.stream_->on_event(nullptr);
  result.stream_->set_read_timeout(kNever);
  result.reused_ = true;
  places.splice(places.begin(), idle, std::prev(idle.end()));
  return result;
}

void Upstream::keep(std::size_t index, std::shared_ptr<Stream> stream) {
  Server& server = servers_[index];
  // Whatever comes now, an end or bytes that nobody asked for, the connection is of no more use.
  stream->on_event([this, raw = stream.get()] { drop_idle(raw); });
  stream->set_read_timeout(kMaxIdle);
  stream->release_buffer();
  if (server.places.empty()) server.places.emplace_back();
  server.places.front() = std::move(stream);
  server.idle.splice(server.idle.end(), server.places, server.places.begin());
}

void Upstream::drop_idle(Stream* stream) {
  for (Server& server : servers_) {
    const auto found = std::find_if(server.idle.begin(), server.idle.end(),
                                    [&](const auto& kept) { return kept.get() == stream; });
    if (found == server.idle.end()) continue;
    std::shared_ptr<Stream> dropped = std::move(*found);
    server.idle.erase(found);
    dropped->set_read_timeout(kNever);
    dropped->close();
    // It may be its own event that brought us here: it must outlast it.
    return loop_.post([dropped = std::move(dropped)] {});
  }
}

Task<Outbound> Upstream::connect(std::shared_ptr<Stream>& current, Used used) {
  std::vector<bool> tried(servers_.size());
  Outbound none;
  for (;;) {
    const int picked = pick(tried, used);
    if (picked < 0) co_return none;
    const auto server = static_cast<std::size_t>(picked);
    tried[server] = true;
    const SteadyTime began = loop_.deadlines().now();
    Outbound result = begin(server, used);
    const Stream::Status status = co_await connect_to(server, current);
    if (status == Stream::Status::aborted) co_return Outbound{};
    if (status == Stream::Status::ok) {
      rotation_.accepted(server);
      result.stream_ = current;
      co_return result;
    }
    if (status == Stream::Status::exhausted) {
      none.lacked_sockets_ = true;
    } else {
      rotation_.refused(server, began, loop_.deadlines().now());
    }
  }
}

Task<Stream::Status> Upstream::connect_to(std::size_t index, std::shared_ptr<Stream>& current) {
  Server& server = servers_[index];
  const SteadyTime now = loop_.deadlines().now();
  current = std::make_shared<Stream>(loop_, -1);
  const bool unresolved = server.endpoints.empty();
  if (unresolved ||
      (server.resolved_at != SteadyTime::max() && now - server.resolved_at > kNameValid)) {
    spawn(resolve(weak_from_this(), index), [] {});
  }
  if (unresolved) {
    server.unresolved.push_back(current);
    const Stream::Status found = co_await current->wait_for_peer(options_.connect_timeout);
    std::erase(server.unresolved, current);
    if (found != Stream::Status::ok) co_return found;
    if (server.endpoints.empty()) co_return Stream::Status::reset;
  }
  // Of several addresses, one that did not answer says more than one that we could not try.
  Stream::Status result = Stream::Status::exhausted;
  const std::vector<asio::ip::tcp::endpoint> endpoints = server.endpoints;
  for (const auto& endpoint : endpoints) {
    const Stream::Status status = co_await current->connect(endpoint, options_.connect_timeout);
    if (status != Stream::Status::exhausted) result = status;
    if (status == Stream::Status::ok || status == Stream::Status::aborted) break;
  }
  co_return result;
}

// Gets the name's addresses as they are now, once for all who wait for them. Old ones stay in use
// while none can be had; and neither they nor the upstream need live until the name server answers.
Task<void> Upstream::resolve(std::weak_ptr<Upstream> upstream, std::size_t index) {
  auto self = upstream.lock();
  if (!self || self->servers_[index].resolving) co_return;
  self->servers_[index].resolving = true;
  const ServerAddress address = self->servers_[index].address;
  Lookup lookup(self->loop_);
  self.reset();
  const auto found = co_await lookup.find(address);
  self = upstream.lock();
  if (!self) co_return;
  Server& server = self->servers_[index];
  server.resolving = false;
  for (const auto& stream : std::exchange(server.unresolved, {})) stream->go_on();
  if (found.empty()) co_return;
  server.resolved_at = self->loop_.deadlines().now();
  server.endpoints.assign(found.begin(), found.end());
}

}  // namespace weir::http
