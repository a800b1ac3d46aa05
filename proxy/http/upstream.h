#pragma once

// One upstream as one loop sees it: its servers, which of them to use next, and the connections to
// them that are kept for the next request. Owned by its loop's thread; an exchange under way holds
// it by shared_ptr, so that a reload does not pull it from under a request.

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "proxy/http/stream.h"
#include "proxy/upstream_options.h"

namespace weir::http {

class Upstream;

// A connection to one server while one attempt uses it. Goes back to the upstream by keep(); if
// not, it is closed.
class Outbound {
 public:
  Outbound() = default;
  Outbound(Outbound&& other) noexcept;
  Outbound& operator=(Outbound&& other) noexcept;
  ~Outbound() { release(); }

  explicit operator bool() const { return stream_ != nullptr; }
  Stream& stream() const { return *stream_; }
  // Why there is none, behind Upstream::connect(): we could not make any, whatever the servers are
  // like.
  bool lacked_sockets() const { return lacked_sockets_; }
  // Used before: the server may have closed it just now, without having seen the request.
  bool reused() const { return reused_; }
  // The server is done with this request and can take the next.
  void keep();
  // Closes.
  void release();

 private:
  friend class Upstream;
  void end();

  Upstream* upstream_ = nullptr;  // nullptr: of no use any more
  std::size_t server_ = 0;
  std::shared_ptr<Stream> stream_;
  bool reused_ = false;
  bool lacked_sockets_ = false;
};

// Which server is next. Pure: `now` comes in.
class Rotation {
 public:
  explicit Rotation(std::size_t servers) : servers_(servers) {}

  // The server with the fewest requests under way, in turn among equals. Servers that refused
  // lately come only when no other is left; those in `tried` not at all. -1: none.
  int pick(SteadyTime now, const std::vector<bool>& tried) const;
  void began(std::size_t server);
  void ended(std::size_t server) { --servers_[server].under_way; }
  // One outage is one step, however many find out: what began before the server's pause was over
  // tells nothing new.
  void refused(std::size_t server, SteadyTime began, SteadyTime now);
  void accepted(std::size_t server) { servers_[server].refusals = 0; }

 private:
  struct Server {
    int under_way = 0;
    int refusals = 0;  // in a row
    SteadyTime passed_over_until{};
  };
  std::vector<Server> servers_;
  std::size_t last_ = 0;
};

class Upstream : public std::enable_shared_from_this<Upstream> {
 public:
  Upstream(Loop& loop, const UpstreamOptions& options);
  ~Upstream();

  const UpstreamOptions& options() const { return options_; }

  // Servers that a call has used already are passed over where there is another; those that it is
  // sent to now are added. nullptr: the call does not care.
  using Used = std::vector<bool>*;
  // A kept connection to the server whose turn it is, if there is one: no waiting.
  Outbound take_idle(Used used = nullptr);
  // A fresh one. `current` is the stream that is being connected, for the caller to abort. Passes
  // on to the next server while one refuses; an empty Outbound when all did, or it was aborted.
  Task<Outbound> connect(std::shared_ptr<Stream>& current, Used used = nullptr);

 private:
  friend class Outbound;
  struct Server {
    ServerAddress address;
    std::vector<asio::ip::tcp::endpoint> endpoints;
    SteadyTime resolved_at{};
    bool resolving = false;
    std::vector<std::shared_ptr<Stream>> unresolved;  // wait for its first addresses
    std::list<std::shared_ptr<Stream>> idle;          // the latest last
    std::list<std::shared_ptr<Stream>> places;        // its spare nodes, so that none is allocated
  };

  Outbound begin(std::size_t server, Used used);
  int pick(const std::vector<bool>& tried, Used used) const;
  void keep(std::size_t server, std::shared_ptr<Stream> stream);
  void drop_idle(Stream* stream);
  static Task<void> resolve(std::weak_ptr<Upstream> upstream, std::size_t server);
  Task<Stream::Status> connect_to(std::size_t server, std::shared_ptr<Stream>& current);

  Loop& loop_;
  const UpstreamOptions options_;
  std::vector<Server> servers_;
  Rotation rotation_;
};

}  // namespace weir::http
