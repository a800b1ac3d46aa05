#pragma once

// One worker: a thread with an event loop, a listener, the connections it took and the proxy that
// serves them. Made and ended by the daemon; everything inside belongs to the worker's own thread.

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "coordination/base/clock.h"
#include "daemon/system.h"
#include "proxy/http/server.h"
#include "proxy/proxy.h"

namespace weir {

class Worker {
 public:
  // `listener` is a listening socket; `connections` counts those of all workers. The coordinator
  // outlives the worker.
  Worker(const Clock& clock, int listener, std::atomic<std::size_t>& connections,
         Coordinator& coordinator);
  ~Worker();

  // Before start(), and at any time later: holds from the next request and connection on.
  void configure(std::shared_ptr<const Settings> settings, http::ServerOptions options,
                 AccessLog access_log);
  void start();

  // `drained` is called on the worker's thread once the last connection has gone.
  void drain(std::function<void()> drained);
  // Cuts what is left; `counted` gets the number of requests cut, on the worker's thread.
  void abort(std::function<void(std::size_t)> counted);

  const ProxyStats& stats() const { return stats_; }

 private:
  ProxyStats stats_;
  SystemRandom random_;
  http::Loop loop_;
  Proxy proxy_;
  http::Server server_;
  std::thread thread_;
};

}  // namespace weir
