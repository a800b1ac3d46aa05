#pragma once

// The thread that coordination runs on: its loop, the embedded store and the coordinator. Made and
// ended by the daemon, before and after the workers, which take from the coordinator's allowances;
// everything here may be called by any thread unless it says otherwise.

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "coordination/coordinator.h"
#include "coordination/memory_store.h"

namespace weir {

class CoordinationThread {
 public:
  struct Limits {
    std::vector<std::pair<std::string, Limit>> by_rule;  // of this replica
    std::size_t max_resources = 0, max_waiting = 0;
  };

  CoordinationThread(const Clock& clock, std::unique_ptr<Random> random,
                     CoordinatorOptions options);
  ~CoordinationThread() { join(); }

  // For what any thread may call of it.
  Coordinator& coordinator() { return coordinator_; }

  // Before start(), by the thread that made it.
  void configure_now(const Limits& limits);
  void start();

  // `then` follows on the coordination thread, as do all callbacks here.
  void configure(Limits limits, std::function<void()> then);
  void drain();
  void stop(std::function<void()> done);
  void inspect(std::shared_ptr<Resource> resource,
               std::function<void(Coordinator::Claims)> callback);

  // Ends the thread; what has not been answered then never is. By the thread that made it.
  void join();

 private:
  void wake();
  void after_work();
  void arm(std::optional<SteadyTime> due);
  template <class Work>
  void post(Work work) {
    asio::post(context_, [this, work = std::move(work)]() mutable {
      work();
      after_work();
    });
  }

  const Clock& clock_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  std::atomic<bool> woken_{false};  // a run is posted and has not begun
  // Owned by the thread:
  asio::steady_timer timer_{context_};
  std::optional<SteadyTime> armed_for_;
  const std::unique_ptr<Random> random_;
  MemoryStore store_;
  Coordinator coordinator_;

  std::thread thread_;
};

}  // namespace weir
