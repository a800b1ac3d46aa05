#include "daemon/worker.h"

namespace weir {

Worker::Worker(const Clock& clock, int listener, std::atomic<std::size_t>& connections,
               Coordinator& coordinator)
    : loop_(clock),
      proxy_({loop_, stats_, coordinator, random_}),
      server_(
          loop_, listener, connections,
          [this](http::Connection& connection) { return proxy_.serve(connection); },
          [this](const http::Connection& connection, http::Denial denial) {
            proxy_.refused(connection, denial);
          }) {}

Worker::~Worker() {
  loop_.stop();
  if (thread_.joinable()) thread_.join();
}

void Worker::configure(std::shared_ptr<const Settings> settings, http::ServerOptions options,
                       AccessLog access_log) {
  loop_.post([this, settings = std::move(settings), options, access_log = std::move(access_log)] {
    proxy_.configure(*settings, access_log);
    server_.configure(options);
  });
}

void Worker::start() {
  loop_.post([this] { server_.start(); });
  thread_ = std::thread([this] { loop_.run(); });
}

void Worker::drain(std::function<void()> drained) {
  loop_.post([this, drained = std::move(drained)] {
    server_.on_drained(drained);
    server_.drain();
  });
}

void Worker::abort(std::function<void(std::size_t)> counted) {
  loop_.post([this, counted = std::move(counted)] {
    counted(server_.busy_connections());
    server_.abort();
  });
}

}  // namespace weir
