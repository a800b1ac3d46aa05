#pragma once

// The process: builds everything, names every owner, and takes it down in order. It runs on the
// main thread, whose loop serves the admin address, the signals and the reloads; workers and the
// coordination thread are told by post.

#include <asio/signal_set.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/admin.h"
#include "daemon/config.h"
#include "daemon/cooldowns.h"
#include "daemon/coordination_thread.h"
#include "daemon/explain_page.h"
#include "daemon/file_watch.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/resource_pages.h"
#include "daemon/throttles.h"
#include "daemon/worker.h"

namespace weir {

class Daemon {
 public:
  // Binds; throws std::exception with a message for the operator if that cannot be done. Signals
  // count from here on.
  // `loaded` is what the sources gave, a good configuration.
  Daemon(const Clock& clock, Log& log, Sources sources, Loaded loaded);
  ~Daemon();

  // Serves until SIGTERM or SIGINT and the drain that follows.
  void run();

 private:
  enum class Phase { serving, draining, cutting };

  std::function<void()> workers_configuration();
  std::shared_ptr<const Settings> make_settings();
  void wait_for_signal();
  void on_signal(int signal);
  void reload(std::string_view why);
  void drain();
  void cut();
  void on_drained();
  void end();
  std::string not_ready() const;  // why; empty: ready
  std::string metrics() const;
  std::string status() const;
  std::string replicas() const;
  std::string upstreams() const;
  std::vector<const ProxyStats*> loop_stats() const;

  const Clock& clock_;
  Log& log_;
  const Sources sources_;
  const std::string default_replica_;
  Config config_;  // the last good one
  const WallTime since_;
  DaemonStats stats_;
  Phase phase_ = Phase::serving;
  std::size_t undrained_ = 0;        // workers
  std::atomic<std::size_t> cut_{0};  // requests

  http::Loop loop_;
  Cooldowns cooldowns_;  // outlives all who know of it
  Throttles throttles_;
  asio::signal_set signals_;
  std::string listen_address_, admin_address_;
  std::atomic<std::size_t> connections_{0};
  std::atomic<std::size_t> admin_connections_{0};
  std::unique_ptr<CoordinationThread> coordination_;                 // outlives the workers
  std::map<std::string, std::shared_ptr<UpstreamRetries>> retries_;  // the last ones, by upstream
  std::shared_ptr<const Settings> settings_;                         // of config_
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<ResourcePages> resource_pages_;
  std::unique_ptr<ExplainPage> explain_page_;
  Admin admin_;
  std::unique_ptr<http::Server> admin_server_;
  std::unique_ptr<FileWatch> file_watch_;
  http::Deadlines::Entry drain_deadline_;
  http::Deadlines::Entry stop_deadline_;
  bool ending_ = false;
};

}  // namespace weir
