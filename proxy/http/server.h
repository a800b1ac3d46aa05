#pragma once

// One listener on one loop and the connections it took. Reads requests, hands each to its handler,
// and goes on. Owned by its loop's thread; construct it before the loop runs.

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "proxy/http/connection.h"

namespace weir::http {

// Listening sockets that share one address, one for each loop. The first is bound without
// SO_REUSEPORT, so that another process on the address, be it one of us, is an error and not a
// silent neighbour. Throws std::system_error.
std::vector<int> listen_shared(const std::string& host, const std::string& port, std::size_t count);
// "127.0.0.1:4040"
std::string local_address(int listener);

class Server {
 public:
  using Handler = std::function<Task<void>(Connection&)>;
  // Told of each request that the server turned away by itself.
  using Refused = std::function<void(const Connection&, Denial)>;

  // Takes the listening socket over. `connections` counts those of all servers of the process.
  Server(Loop& loop, int listener, std::atomic<std::size_t>& connections, Handler handler,
         Refused refused);
  ~Server();

  void configure(const ServerOptions& options) { options_ = options; }
  void start();
  // Takes no more connections, closes idle ones, lets the others finish their request.
  void drain();
  bool draining() const { return draining_; }
  // Cuts what is left.
  void abort();
  // Connections with a request under way.
  std::size_t busy_connections() const;
  // Called on the loop when the last connection has gone after drain().
  void on_drained(std::function<void()> handler) { on_drained_ = std::move(handler); }

 private:
  static void ready(void* self, unsigned events);
  void accept();
  void take(int socket);
  Task<void> serve(std::shared_ptr<Connection> connection);
  Task<void> turn_away(std::shared_ptr<Connection> connection);
  void forget(Connection* connection);

  Loop& loop_;
  int listener_;
  Readiness::Entry readiness_{&Server::ready, this};
  Deadlines::Entry accept_again_;
  std::atomic<std::size_t>& total_;
  const Handler handler_;
  const Refused refused_;
  ServerOptions options_;
  bool draining_ = false;
  std::unordered_set<Connection*> connections_;
  std::function<void()> on_drained_;
};

}  // namespace weir::http
