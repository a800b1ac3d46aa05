#include "proxy/proxy.h"

#include <algorithm>
#include <optional>

#include "proxy/exchange.h"

namespace weir {
namespace {

constexpr std::size_t kSpareSeats = 1024;  // for requests under way at once, 4 KiB and more each
constexpr std::size_t kSpareCapacity = 2 * http::Loop::kBuffer;

// The previous upstream if nothing about it changed, so that its connections live on.
std::shared_ptr<http::Upstream> upstream_for(const UpstreamOptions& options, const Setup* previous,
                                             http::Loop& loop) {
  if (previous) {
    for (const auto& upstream : previous->upstreams) {
      const UpstreamOptions& old = upstream->options();
      if (old.name == options.name && old.servers == options.servers &&
          old.connect_timeout == options.connect_timeout &&
          old.response_timeout == options.response_timeout) {
        return upstream;
      }
    }
  }
  return std::make_shared<http::Upstream>(loop, options);
}

}  // namespace

Setup::Setup(const Settings& settings, const Setup* previous, const Surroundings& surroundings)
    : coordinator(surroundings.coordinator),
      stats(surroundings.stats),
      routes(settings.routes),
      trusted(settings.trusted_proxies),
      escaped_slashes(settings.escaped_slashes),
      headers(settings.headers),
      retries(settings.retries) {
  for (const UpstreamOptions& options : settings.upstreams) {
    upstreams.push_back(upstream_for(options, previous, surroundings.loop));
    cooldowns.push_back({settings.cooldowns[cooldowns.size()], options.cooldown.project});
    const auto& gate = settings.throttles[throttles.size()];
    throttles.push_back(
        {gate, gate ? std::make_unique<LineBell>(surroundings.loop, gate->line()) : nullptr});
  }
  for (std::size_t i = 0; i <= routes->size(); ++i) {
    const Rule& rule = routes->rule(i);
    const auto upstream = std::find_if(
        upstreams.begin(), upstreams.end(),
        [&](const auto& candidate) { return candidate->options().name == rule.upstream; });
    const auto index = static_cast<std::size_t>(upstream - upstreams.begin());
    const AttemptSurroundings attempts{retries[index].get(), stats.upstream(rule.upstream), stats,
                                       surroundings.random};
    per_rule.push_back({&stats.rule(rule.name), upstream->get(), attempts,
                        rule.limit.unlimited ? nullptr : &coordinator.policy(rule.name), index});
  }
}

// Kept from one request to the next: an exchange is too large to be allocated cheaply.
struct Proxy::Seat {
  Buffers buffers;
  std::optional<Exchange> exchange;
};

Proxy::Proxy(const Surroundings& surroundings) : surroundings_(surroundings) {}
Proxy::~Proxy() = default;

void Proxy::configure(const Settings& settings, AccessLog access_log) {
  setup_ = std::make_shared<const Setup>(settings, setup_.get(), surroundings_);
  access_log_ = std::move(access_log);
}

http::Task<void> Proxy::serve(http::Connection& connection) {
  const SteadyTime began = access_log_ ? connection.loop().clock().steady_now() : SteadyTime{};
  auto seat = borrow_seat();
  Exchange& exchange = seat->exchange.emplace(setup_, connection, seat->buffers);
  co_await exchange.run();
  exchange.stats().count(exchange.ending());
  if (access_log_ && began != SteadyTime{}) {  // it was on all the time
    access_log_({connection.peer_text(), connection.request().method, connection.request().target,
                 exchange.rule().name, exchange.status(), exchange.ending(),
                 std::chrono::duration_cast<std::chrono::microseconds>(
                     connection.loop().clock().steady_now() - began)});
  }
  return_seat(std::move(seat));
}

std::unique_ptr<Proxy::Seat> Proxy::borrow_seat() {
  if (spare_seats_.empty()) return std::make_unique<Seat>();
  auto seat = std::move(spare_seats_.back());
  spare_seats_.pop_back();
  return seat;
}

void Proxy::return_seat(std::unique_ptr<Seat> seat) {
  seat->exchange.reset();
  Buffers& buffers = seat->buffers;
  // Those of an unusual request, or of an unusual number of them, are not worth keeping.
  if (spare_seats_.size() == kSpareSeats) return;
  if (std::max(buffers.wire.capacity(), buffers.out.capacity()) > kSpareCapacity) return;
  buffers.answer.release_large();
  buffers.wire.clear();
  buffers.out.clear();
  spare_seats_.push_back(std::move(seat));
}

void Proxy::refused(const http::Connection& connection, http::Denial denial) {
  const Ending ending = denial == http::Denial::queue_full ? Ending::queue_full : Ending::malformed;
  const std::string& rule = setup_->routes->rule(setup_->routes->size()).name;
  setup_->per_rule.back().stats->count(ending);
  if (access_log_) {
    // Method and target are empty where the head could not be read.
    const http::Head& request = connection.request();
    access_log_({connection.peer_text(), request.method, request.target, rule,
                 http::status_of(denial), ending, std::chrono::microseconds{0}});
  }
}

}  // namespace weir
