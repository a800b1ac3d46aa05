// Admission alone: find the resource, take a unit, spend it and settle, as a worker does for each
// request. The limit is never reached, and no other process counts it, so that nothing is claimed.
// Run and judged by bench/micro.

#include <benchmark/benchmark.h>

#include <memory>
#include <semaphore>
#include <string>

#include "daemon/coordination_thread.h"
#include "daemon/system.h"

namespace weir {
namespace {

constexpr std::int64_t kNeverReached = 1'000'000'000;
constexpr std::size_t kResources = 1'000;

// One daemon's coordination, made anew for each run. Its Setup and Teardown surround the threads.
class Bench {
 public:
  Bench() : thread_(clock_, std::make_unique<SystemRandom>(), {}, {}) {
    Limit limit;
    limit.units = kNeverReached;
    CoordinationThread::Limits limits;
    limits.by_rule.emplace_back("default", limit);
    limits.max_resources = kResources;
    limits.max_waiting = kResources;
    thread_.configure_now(limits);
    thread_.start();
  }
  const Clock& clock() const { return clock_; }
  Coordinator& coordinator() { return thread_.coordinator(); }

  static void set_up(const benchmark::State&) { current = std::make_unique<Bench>(); }
  static void tear_down(const benchmark::State&) { current.reset(); }
  static std::unique_ptr<Bench> current;

 private:
  SystemClock clock_;
  CoordinationThread thread_;
};
std::unique_ptr<Bench> Bench::current;

// A worker: blocks where the proxy's coroutine would be suspended.
class Worker {
 public:
  Worker(const Clock& clock, Coordinator& coordinator, std::string resource)
      : clock_(clock), coordinator_(coordinator), resource_(std::move(resource)) {}

  // False: it was refused.
  bool request(Policy& policy) {
    Waiter waiter;
    waiter.wake = [](void* who) { static_cast<Worker*>(who)->woken_.release(); };
    waiter.who = this;
    const std::shared_ptr<Allowance> allowance = coordinator_.find(policy, resource_)->allowance();
    if (allowance->take(allowance, waiter, Queue::fifo, clock_.now()) ==
        Allowance::Taken::waiting) {
      ++waits_;
      woken_.acquire();
    }
    if (!waiter.permit) return false;
    waiter.permit.spend();
    waiter.permit.settle();
    return true;
  }
  std::int64_t waits() const { return waits_; }

 private:
  const Clock& clock_;
  Coordinator& coordinator_;
  const std::string resource_;
  std::binary_semaphore woken_{0};
  std::int64_t waits_ = 0;
};

void spend(benchmark::State& state, std::string resource) {
  Coordinator& coordinator = Bench::current->coordinator();
  Policy& policy = coordinator.policy("default");
  Worker worker(Bench::current->clock(), coordinator, std::move(resource));
  for (auto _ : state) {
    if (!worker.request(policy)) {
      state.SkipWithError("refused: the limit was reached, or the store is gone");
      return;
    }
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["waits"] = static_cast<double>(worker.waits());  // all threads
}

void one_resource(benchmark::State& state) { spend(state, "/reports/one"); }

void own_resource(benchmark::State& state) {
  spend(state, "/reports/" + std::to_string(state.thread_index()));
}

void configure(benchmark::internal::Benchmark* bench) {
  bench->Setup(Bench::set_up)->Teardown(Bench::tear_down)->UseRealTime();
  for (const int threads : {1, 2, 4}) bench->Threads(threads);
}

BENCHMARK(one_resource)->Apply(configure);
BENCHMARK(own_resource)->Apply(configure);

}  // namespace
}  // namespace weir
