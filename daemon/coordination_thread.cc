#include "daemon/coordination_thread.h"

#include <algorithm>

namespace weir {

CoordinationThread::CoordinationThread(const Clock& clock, std::unique_ptr<Random> random,
                                       CoordinatorOptions options)
    : clock_(clock),
      random_(std::move(random)),
      store_(clock),
      coordinator_(clock, *random_, store_, std::move(options), [this] { wake(); }) {}

void CoordinationThread::configure_now(const Limits& limits) {
  coordinator_.configure(limits.by_rule, limits.max_resources, limits.max_waiting);
}

void CoordinationThread::start() {
  post([] {});
  thread_ = std::thread([this] { context_.run(); });
}

void CoordinationThread::join() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

void CoordinationThread::configure(Limits limits, std::function<void()> then) {
  post([this, limits = std::move(limits), then = std::move(then)] {
    configure_now(limits);
    then();
  });
}

void CoordinationThread::drain() {
  post([this] { coordinator_.drain(); });
}

void CoordinationThread::stop(std::function<void()> done) {
  post([this, done = std::move(done)]() mutable { coordinator_.stop(std::move(done)); });
}

void CoordinationThread::inspect(std::shared_ptr<Resource> resource,
                                 std::function<void(Coordinator::Claims)> callback) {
  post([this, resource = std::move(resource), callback = std::move(callback)]() mutable {
    coordinator_.inspect(*resource, std::move(callback));
  });
}

// However many ask before it runs, one run answers all of them.
void CoordinationThread::wake() {
  if (woken_.exchange(true)) return;
  post([this] { woken_ = false; });
}

void CoordinationThread::after_work() {
  const std::optional<SteadyTime> expiry = store_.next_expiry();
  if (expiry && *expiry <= clock_.steady_now()) store_.expire();
  coordinator_.run();
  std::optional<SteadyTime> due = coordinator_.next_due();
  if (const auto next = store_.next_expiry()) due = due ? std::min(*due, *next) : *next;
  arm(due);
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
