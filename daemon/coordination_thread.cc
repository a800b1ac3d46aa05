#include "daemon/coordination_thread.h"

#include <algorithm>

namespace weir {
namespace {

bool embedded(const CoordinationOptions& options) {
  return options.kind == CoordinationOptions::Kind::embedded;
}

CoordinatorOptions coordinator_options(const CoordinationThread::Options& options) {
  CoordinatorOptions result{.prefix = options.store.etcd.prefix,
                            .replica = options.self.name,
                            .max_resources = options.max_resources,
                            .store_timeout = options.store.etcd.timeout,
                            .on_store_failure = options.store.on_store_failure};
  if (embedded(options.store)) {  // one clock, and a store that ends with the process
    result.sole = true;
    result.clock_skew = std::chrono::seconds{0};
    result.kept_ttl = std::chrono::hours{24 * 365};
  }
  return result;
}

}  // namespace

CoordinationThread::CoordinationThread(const Clock& clock, std::unique_ptr<Random> random,
                                       const Options& options, Notices notices)
    : clock_(clock),
      on_store_failure_(options.store.on_store_failure),
      name_(options.self.name),
      notices_(std::move(notices)),
      random_(std::move(random)),
      keys_(options.store.etcd.prefix, options.self.name) {
  coordinator_ = std::make_unique<Coordinator>(clock_, *random_, make_store(options),
                                               coordinator_options(options), [this] { wake(); });
  Store& store = coordinator_->store();
  session_ = std::make_unique<Session>(store, *random_, clock_, keys_.own_replica(),
                                       replica_value(options.self), [this] {
                                         const Session::State state = session_->state();
                                         session_state_ = state;
                                         if (state == Session::State::held) joined_ = true;
                                         if (state == Session::State::name_taken) {
                                           notices_.warn("another live replica is called " + name_ +
                                                         ": not ready until its lease ends");
                                         }
                                       });
  membership_ =
      std::make_unique<Membership>(store, *random_, clock_, keys_, [this] { on_members(); });
  if (options.cooldowns && !embedded(options.store)) {
    cooldowns_ =
        std::make_unique<CooldownShare>(store, *random_, clock_, keys_, *options.cooldowns);
  }
}

Store& CoordinationThread::make_store(const Options& options) {
  if (embedded(options.store)) {
    memory_ = std::make_unique<MemoryStore>(clock_);
    return *memory_;
  }
  EtcdNotices notices;
  notices.warn = notices_.warn;
  notices.up = [this] { notices_.info("etcd answers"); };
  notices.down = [this](const std::string& why) {
    notices_.warn("no member of etcd can be used: " + why);
  };
  notices.replaced = [this] {
    notices_.warn(
        "etcd was restored or replaced: nothing is claimed until the windows that this "
        "falls into have ended");
    coordinator_->store_replaced();
    session_->start_over();
    if (cooldowns_) cooldowns_->start_over();
  };
  etcd_ = std::make_unique<EtcdStore>(
      options.store.etcd, clock_, *random_,
      [this](std::function<void()> work) { post(std::move(work)); }, std::move(notices));
  return *etcd_;
}

void CoordinationThread::configure_now(const Limits& limits) {
  coordinator_->configure(limits.by_rule, limits.max_resources, limits.max_waiting);
}

void CoordinationThread::start() {
  post([] {});
  thread_ = std::thread([this] { context_.run(); });
}

void CoordinationThread::join() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

std::string CoordinationThread::not_ready() const {
  if (session_state_ == Session::State::name_taken) return "name_taken";
  const CoordinatorStats& stats = coordinator_->stats();
  const bool needs_store = !joined_ || on_store_failure_ == OnStoreFailure::reject;
  if (!stats.store_up && needs_store) return "store_unavailable";
  return joined_ ? "" : "starting";
}

std::vector<ReplicaFacts> CoordinationThread::replicas() const {
  std::lock_guard lock(replicas_mutex_);
  return replicas_;
}

// Names come sorted, as the shares go.
void CoordinationThread::on_members() {
  std::vector<std::string> names;
  std::vector<ReplicaFacts> facts;
  for (const auto& [name, member] : membership_->members()) {
    names.push_back(name);
    facts.push_back(member.facts);
  }
  coordinator_->set_replicas(names);
  const auto own = membership_->members().find(name_);
  session_->saw(own == membership_->members().end() ? std::nullopt
                                                    : std::optional{own->second.lease});
  std::lock_guard lock(replicas_mutex_);
  replicas_ = std::move(facts);
}

void CoordinationThread::configure(Limits limits, std::function<void()> then) {
  post([this, limits = std::move(limits), then = std::move(then)] {
    configure_now(limits);
    if (cooldowns_) cooldowns_->read_anew();  // an upstream may have got one
    then();
  });
}

void CoordinationThread::drain() {
  post([this] { coordinator_->drain(); });
}

// The name is given up last: units go back while it still stands for them.
void CoordinationThread::stop(std::function<void()> done) {
  post([this, done = std::move(done)]() mutable {
    coordinator_->stop(
        [this, done = std::move(done)]() mutable { session_->end(std::move(done)); });
  });
}

void CoordinationThread::inspect(const Policy& policy, std::string resource,
                                 std::function<void(std::optional<Coordinator::Claims>)> callback) {
  post([this, &policy, resource = std::move(resource), callback = std::move(callback)]() mutable {
    coordinator_->inspect(policy, resource, std::move(callback));
  });
}

// However many ask before it runs, one run answers all of them.
void CoordinationThread::wake() {
  if (woken_.exchange(true)) return;
  post([this] { woken_ = false; });
}

void CoordinationThread::after_work() {
  const SteadyTime now = clock_.steady_now();
  if (memory_ && memory_->next_expiry().value_or(SteadyTime::max()) <= now) memory_->expire();
  if (etcd_) etcd_->run();
  session_->run(now);
  membership_->run(now);
  if (cooldowns_) cooldowns_->run(now);
  coordinator_->run();
  tell_of_store();
  SteadyTime due = SteadyTime::max();
  for (const auto next : {memory_ ? memory_->next_expiry() : etcd_->next_due(),
                          session_->next_due(), membership_->next_due(), coordinator_->next_due(),
                          cooldowns_ ? cooldowns_->next_due() : std::nullopt}) {
    if (next) due = std::min(due, *next);
  }
  arm(due == SteadyTime::max() ? std::nullopt : std::optional{due});
}

void CoordinationThread::tell_of_store() {
  const bool up = coordinator_->stats().store_up;
  if (std::exchange(told_up_, up) == up) return;
  if (up) return notices_.info("the store answers again");
  switch (on_store_failure_) {
    case OnStoreFailure::reject:
      return notices_.warn("the store does not answer: requests that need a unit get 503");
    case OnStoreFailure::share:
      return notices_.warn(
          "the store does not answer: from the next window on this replica keeps "
          "to its share of each limit");
    case OnStoreFailure::allow:
      return notices_.warn("the store does not answer: everything passes");
  }
}

void CoordinationThread::arm(std::optional<SteadyTime> due) {
  if (due == armed_for_) return;
  armed_for_ = due;
  if (!due) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(*due - clock_.steady_now());
  timer_.async_wait([this](std::error_code error) {
    if (error) return;
    armed_for_.reset();
    after_work();
  });
}

}  // namespace weir
