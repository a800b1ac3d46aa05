#include "daemon/daemon.h"

#include <csignal>
#include <nlohmann/json.hpp>

#include "coordination/window.h"
#include "daemon/system.h"
#include "daemon/upstream_page.h"

namespace weir {
namespace {

// Enough for every scraper and operator at once.
constexpr http::Limits kAdminLimits{.connections = 256};
// Of the process itself: listeners, event loops, etcd.
constexpr std::size_t kOtherFiles = 100;
constexpr std::int64_t kMostUnits = 1'000'000'000;
// Giving units back must not keep the process from ending.
constexpr std::chrono::milliseconds kStopTimeout{2'000};

std::vector<int> bind(const ServerAddress& address, std::size_t count, const char* what) {
  try {
    return http::listen_shared(address.host, std::to_string(address.port), count);
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string{"cannot "} + what + " " + error.what());
  }
}

// What this replica enforces of a rule's limit. One without a limit may have had one, for which
// requests still wait.
Limit own_limit(Limit limit, const CoordinationOptions& coordination) {
  if (limit.unlimited) {
    limit.units = kMostUnits;
  } else if (coordination.kind == CoordinationOptions::Kind::embedded) {
    limit.units = share_of(limit.units, coordination.replicas, coordination.replica_index);
  }
  return limit;
}

CoordinationThread::Limits limits_of(const Config& config) {
  CoordinationThread::Limits limits{{}, config.max_resources, config.max_waiting};
  for (const Rule& rule : config.rules) {
    limits.by_rule.emplace_back(rule.name, own_limit(rule.limit, config.coordination));
  }
  const Rule& fallback = config.default_rule;
  limits.by_rule.emplace_back(fallback.name, own_limit(fallback.limit, config.coordination));
  return limits;
}

// Each connection may need a second one, to an upstream.
void warn_of_open_files(Log& log, const http::Limits& limits) {
  const std::size_t files = raise_open_files();
  if (limits.connections * 2 + kOtherFiles <= files) return;
  log.warn("limits.connections is more than the open files allow: each may need two",
           {{"connections", static_cast<std::int64_t>(limits.connections)},
            {"open_files", static_cast<std::int64_t>(files)}});
}

AccessLog access_log(Log& log) {
  return [&log](const AccessRecord& record) {
    log.access({{"client", record.client},
                {"method", record.method},
                {"target", record.target},
                {"rule", record.rule},
                {"status", std::int64_t{record.status}},
                {"outcome", to_string(record.ending)},
                {"took_us", std::int64_t{record.took.count()}}});
  };
}

}  // namespace

Daemon::Daemon(const Clock& clock, Log& log, Sources sources, Loaded loaded)
    : clock_(clock),
      log_(log),
      sources_(std::move(sources)),
      default_replica_(default_replica_name()),
      config_(*std::move(loaded.config)),
      since_(clock.wall_now()),
      loop_(clock),
      cooldowns_(
          clock, config_.coordination.kind == CoordinationOptions::Kind::embedded
                     ? std::function<void()>{}
                     : [this] { coordination_->wake(); }),
      throttles_(clock),
      signals_(loop_.context(), SIGTERM, SIGINT, SIGHUP),
      admin_({[this] { return not_ready(); }, [this] { return metrics(); },
              [this] { return status(); }, [this] { return replicas(); },
              [this] { return upstreams(); }, [this] { return to_json(config_).dump(2) + "\n"; },
              [this](ResourceQuery query) { return resource_pages_->page(std::move(query)); },
              [this](Question question) {
                return explain_page_->page(std::move(question),
                                           {settings_, config_.limits, phase_ != Phase::serving});
              }}),
      drain_deadline_([this] { cut(); }),
      stop_deadline_([this] { end(); }) {
  if (config_.replica.empty()) config_.replica = default_replica_;
  const std::size_t workers = config_.workers > 0
                                  ? static_cast<std::size_t>(config_.workers)
                                  : std::max(1u, std::thread::hardware_concurrency());
  const std::vector<int> listeners = bind(config_.listen, workers, "listen on");
  listen_address_ = http::local_address(listeners.front());
  coordination_ = std::make_unique<CoordinationThread>(
      clock_, std::make_unique<SystemRandom>(),
      CoordinationThread::Options{
          config_.coordination,
          {config_.replica, listen_address_, WEIR_VERSION, utc_text(since_)},
          config_.max_resources,
          &cooldowns_},
      CoordinationThread::Notices{[this](const std::string& text) { log_.info(text); },
                                  [this](const std::string& text) { log_.warn(text); }});
  resource_pages_ = std::make_unique<ResourcePages>(loop_, *coordination_);
  explain_page_ = std::make_unique<ExplainPage>(
      loop_, *coordination_, config_.coordination.on_store_failure, cooldowns_, throttles_);
  for (int listener : listeners) {
    workers_.push_back(
        std::make_unique<Worker>(clock_, listener, connections_, coordination_->coordinator()));
  }
  const int admin = bind(config_.admin, 1, "serve the admin address on").front();
  admin_address_ = http::local_address(admin);
  admin_server_ = std::make_unique<http::Server>(
      loop_, admin, admin_connections_,
      [this](http::Connection& connection) { return admin_.serve(connection); },
      [](const http::Connection&, http::Denial) {});
  admin_server_->configure({kAdminLimits, config_.timeouts});
  file_watch_ =
      std::make_unique<FileWatch>(loop_, loaded.files, [this] { reload("file changed"); });
}

// The thread that wakes those in line ends before their loops do, but what they hold of it stays.
Daemon::~Daemon() {
  if (coordination_) coordination_->join();
}

void Daemon::run() {
  std::signal(SIGPIPE, SIG_IGN);
  wait_for_signal();
  coordination_->configure_now(limits_of(config_));
  workers_configuration()();
  coordination_->start();
  for (auto& worker : workers_) worker->start();
  admin_server_->start();
  log_.info("listening on " + listen_address_ + ", admin on " + admin_address_,
            {{"replica", config_.replica},
             {"workers", static_cast<std::int64_t>(workers_.size())},
             {"version", WEIR_VERSION}});
  loop_.run();
  if (cut_ > 0) {
    log_.warn("requests were cut because the drain ran out of time",
              {{"requests", static_cast<std::int64_t>(cut_)}});
  }
  log_.info("stopped");
}

// What the workers share about retries lives on from one configuration to the next.
std::shared_ptr<const Settings> Daemon::make_settings() {
  std::vector<std::shared_ptr<UpstreamRetries>> retries;
  std::vector<std::shared_ptr<Cooldown>> cooldowns;
  std::vector<std::shared_ptr<UpstreamThrottle>> throttles;
  for (const UpstreamOptions& upstream : config_.upstreams) {
    auto& last = retries_[upstream.name];
    last = UpstreamRetries::make(upstream, last.get(), clock_.steady_now());
    retries.push_back(last);
    cooldowns.push_back(cooldowns_.configure(upstream));
    throttles.push_back(throttles_.configure(upstream));
  }
  throttles_.keep_only(config_.upstreams);
  return std::make_shared<const Settings>(
      Settings{std::make_shared<const Routes>(config_.rules, config_.default_rule, config_.tenant),
               config_.upstreams, std::move(retries), std::move(cooldowns), std::move(throttles),
               config_.escaped_slashes, config_.headers, config_.trusted_proxies});
}

// What tells the workers of the configuration that holds now; for any thread.
std::function<void()> Daemon::workers_configuration() {
  log_.configure(config_.log);
  warn_of_open_files(log_, config_.limits);
  settings_ = make_settings();
  return
      [this, settings = settings_, options = http::ServerOptions{config_.limits, config_.timeouts},
       access = config_.log.access ? access_log(log_) : AccessLog{}] {
        for (auto& worker : workers_) worker->configure(settings, options, access);
      };
}

void Daemon::wait_for_signal() {
  signals_.async_wait([this](std::error_code error, int signal) {
    if (error) return;
    on_signal(signal);
    wait_for_signal();
  });
}

void Daemon::on_signal(int signal) {
  if (signal == SIGHUP) {
    reload("SIGHUP");
  } else if (phase_ == Phase::serving) {
    drain();
  } else {
    cut();  // asked twice: at once
  }
}

// The file as it is now, if all of it is good; otherwise nothing changes.
void Daemon::reload(std::string_view why) {
  if (phase_ != Phase::serving) return;
  Loaded loaded = load_config(sources_);
  file_watch_->watch(loaded.files);
  if (loaded.config) {
    if (loaded.config->replica.empty()) loaded.config->replica = default_replica_;
    loaded.errors = check_reload(config_, *loaded.config);
  }
  if (!loaded.errors.empty()) {
    ++stats_.reloads_failed;
    for (const std::string& error : loaded.errors) log_.error(error);
    log_.error("configuration not taken over: the last good one stays", {{"why", why}});
    return;
  }
  config_ = *std::move(loaded.config);
  // Limits first: no request must meet a rule whose limit is not known.
  coordination_->configure(limits_of(config_),
                           [this, tell_workers = workers_configuration(), why = std::string{why}] {
                             tell_workers();
                             loop_.post([this, why] {
                               ++stats_.reloads_ok;
                               log_.info("configuration taken over", {{"why", why}});
                             });
                           });
}

// Readiness has failed by the time the listeners close: the phase is what /readyz looks at.
void Daemon::drain() {
  phase_ = Phase::draining;
  log_.info("draining", {{"timeout_ms", std::int64_t{config_.drain_timeout.count()}}});
  undrained_ = workers_.size();
  for (auto& worker : workers_) {
    worker->drain([this] { loop_.post([this] { on_drained(); }); });
  }
  cooldowns_.drain();
  throttles_.drain();
  coordination_->drain();  // behind the workers, so that those in line are told to close
  loop_.deadlines().arm(drain_deadline_, config_.drain_timeout);
}

void Daemon::cut() {
  if (phase_ == Phase::cutting) return;
  phase_ = Phase::cutting;
  for (auto& worker : workers_) {
    worker->abort([this](std::size_t requests) { cut_ += requests; });
  }
}

// Nothing is spent any more: what was never used goes back.
void Daemon::on_drained() {
  if (--undrained_ > 0) return;
  coordination_->stop([this] { loop_.post([this] { end(); }); });
  loop_.deadlines().arm(stop_deadline_, kStopTimeout);
}

// The admin address answers to the last; its connections end before their loop does.
void Daemon::end() {
  if (std::exchange(ending_, true)) return;
  admin_server_->on_drained([this] { loop_.stop(); });
  admin_server_->drain();
  admin_server_->abort();
}

std::vector<const ProxyStats*> Daemon::loop_stats() const {
  std::vector<const ProxyStats*> loops;
  loops.reserve(workers_.size());
  for (const auto& worker : workers_) loops.push_back(&worker->stats());
  return loops;
}

std::string Daemon::metrics() const {
  return metrics_text(loop_stats(), coordination_->coordinator(), throttles_, stats_);
}

std::string Daemon::upstreams() const {
  const std::vector<const ProxyStats*> loops = loop_stats();
  return upstreams_page(config_.upstreams, {cooldowns_, throttles_, retries_, loops},
                        clock_.steady_now());
}

std::string Daemon::not_ready() const {
  return phase_ == Phase::serving ? coordination_->not_ready() : "draining";
}

std::string Daemon::status() const {
  const bool embedded = config_.coordination.kind == CoordinationOptions::Kind::embedded;
  const bool store_up = coordination_->coordinator().stats().store_up;
  const std::string reason = not_ready();
  const nlohmann::ordered_json status{
      {"version", WEIR_VERSION},
      {"replica", config_.replica},
      {"since", utc_text(since_)},
      {"ready", reason.empty()},
      {"reason", reason},
      {"listen", listen_address_},
      {"admin", admin_address_},
      {"workers", workers_.size()},
      {"connections", connections_.load()},
      {"store", {{"kind", embedded ? "embedded" : "etcd"}, {"up", store_up}}},
  };
  return status.dump(2) + "\n";
}

std::string Daemon::replicas() const {
  auto list = nlohmann::ordered_json::array();
  for (const ReplicaFacts& replica : coordination_->replicas()) {
    list.push_back({{"name", replica.name},
                    {"address", replica.address},
                    {"version", replica.version},
                    {"since", replica.since},
                    {"self", replica.name == config_.replica}});
  }
  const nlohmann::ordered_json page{{"replicas", std::move(list)}};
  return page.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace weir
