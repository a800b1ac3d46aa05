#pragma once

// The thread that coordination runs on: its loop, the store (embedded, or etcd), the coordinator,
// this replica's session and who else is live. Made and ended by the daemon, before and after the
// workers, which take from the coordinator's allowances; everything here may be called by any
// thread unless it says otherwise.

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "coordination/cooldown_share.h"
#include "coordination/coordinator.h"
#include "coordination/etcd/etcd_store.h"
#include "coordination/membership.h"
#include "coordination/memory_store.h"
#include "coordination/options.h"
#include "coordination/session.h"

namespace weir {

class CoordinationThread {
 public:
  struct Limits {
    std::vector<std::pair<std::string, Limit>> by_rule;  // of this replica
    std::size_t max_resources = 0, max_waiting = 0;
  };
  struct Options {
    CoordinationOptions store;
    ReplicaFacts self;
    std::size_t max_resources = 0;
    CooldownMemory* cooldowns = nullptr;  // to be shared with other replicas; outlives the thread
  };
  // For the operator; called on the coordination thread.
  struct Notices {
    std::function<void(const std::string&)> info, warn;
  };

  CoordinationThread(const Clock& clock, std::unique_ptr<Random> random, const Options& options,
                     Notices notices);
  ~CoordinationThread() { join(); }

  // For what any thread may call of it.
  Coordinator& coordinator() { return *coordinator_; }
  // Why requests should go elsewhere; empty: there is no reason.
  std::string not_ready() const;
  std::vector<ReplicaFacts> replicas() const;

  // Before start(), by the thread that made it.
  void configure_now(const Limits& limits);
  void start();

  // `then` follows on the coordination thread, as do all callbacks here.
  void configure(Limits limits, std::function<void()> then);
  void drain();
  void stop(std::function<void()> done);
  void inspect(const Policy& policy, std::string resource,
               std::function<void(std::optional<Coordinator::Claims>)> callback);

  // There is something to do.
  void wake();

  // Ends the thread; what has not been answered then never is. By the thread that made it.
  void join();

 private:
  Store& make_store(const Options& options);
  void after_work();
  void arm(std::optional<SteadyTime> due);
  void on_members();
  void tell_of_store();
  template <class Work>
  void post(Work work) {
    asio::post(context_, [this, work = std::move(work)]() mutable {
      work();
      after_work();
    });
  }

  const Clock& clock_;
  const OnStoreFailure on_store_failure_;
  const std::string name_;
  const Notices notices_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  std::atomic<bool> woken_{false};   // a run is posted and has not begun
  std::atomic<bool> joined_{false};  // the session has been held once
  std::atomic<Session::State> session_state_{Session::State::absent};
  mutable std::mutex replicas_mutex_;
  std::vector<ReplicaFacts> replicas_;  // guarded by replicas_mutex_
  // Owned by the thread:
  asio::steady_timer timer_{context_};
  std::optional<SteadyTime> armed_for_;
  bool told_up_ = true;
  const std::unique_ptr<Random> random_;
  const Keyspace keys_;
  std::unique_ptr<MemoryStore> memory_;  // this one,
  std::unique_ptr<EtcdStore> etcd_;      // or this one
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<CooldownShare> cooldowns_;  // nullptr: there is nobody to share with

  std::thread thread_;
};

}  // namespace weir
