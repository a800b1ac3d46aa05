#include "coordination/etcd/watches.h"

#include <grpcpp/support/status_code_enum.h>

#include <algorithm>
#include <utility>

#include "coordination/etcd/messages.h"
#include "proto/etcd_rpc.pb.h"

namespace weir::etcd {

class Watches::Handle final : public Watch {
 public:
  explicit Handle(std::shared_ptr<Watcher> watcher) : watcher_(std::move(watcher)) {}
  ~Handle() override {
    watcher_->over = true;
    if (watcher_->stream) watcher_->stream->cancel();
  }

 private:
  std::shared_ptr<Watcher> watcher_;
};

Watches::Watches(const Clock& clock, Calls& calls, Members& members, Seen seen,
                 std::function<void(std::string)> warn)
    : clock_(clock),
      calls_(calls),
      members_(members),
      seen_(std::move(seen)),
      warn_(std::move(warn)) {}

Watches::~Watches() {
  for (const Weak& weak : watchers_) {
    if (const auto watcher = weak.lock()) watcher->stream = nullptr;
  }
}

std::unique_ptr<Watch> Watches::add(KeyRange range, Revision from, SteadyTime deadline,
                                    WatchHandler handler) {
  auto watcher = std::make_shared<Watcher>(std::move(range), from, deadline, std::move(handler));
  std::erase_if(watchers_, [](const Weak& other) { return other.expired(); });
  watchers_.push_back(watcher);
  auto handle = std::make_unique<Handle>(watcher);
  members_.ask(
      deadline,
      [this, weak = Weak(watcher)](const Use& use) {
        const auto found = weak.lock();
        if (found && !found->over) open(found, use);
      },
      [this, weak = Weak(watcher)](const std::string&) {
        if (const auto found = weak.lock()) lose(found);
      });
  return handle;
}

void Watches::open(const std::shared_ptr<Watcher>& watcher, const Use& use) {
  etcdserverpb::WatchRequest request;
  fill(std::move(watcher->range), watcher->from, request);
  watcher->use = use;
  WatchSteps steps;
  steps.response = [this, weak = Weak(watcher)](etcdserverpb::WatchResponse& response) {
    if (const auto found = weak.lock()) on_response(found, response);
  };
  steps.over = [this, weak = Weak(watcher), use](const CallStatus& status) {
    const auto found = weak.lock();
    if (!found) return;
    found->stream = nullptr;
    if (found->over) return;
    lose(found);
    members_.ended(use, status);
  };
  watcher->stream = use.wire->watch(std::move(request), {{}, use.token}, std::move(steps));
}

void Watches::on_response(const std::shared_ptr<Watcher>& watcher,
                          etcdserverpb::WatchResponse& response) {
  if (watcher->over) return;
  seen_(response.header().cluster_id());  // which may lose this watch
  if (watcher->over) return;
  watcher->begun = true;
  if (response.canceled()) {
    lose(watcher);
    if (response.compact_revision() != 0) return;
    if (refused_for_rights(response.cancel_reason())) members_.doubt_token(watcher->use);
    return warn_("etcd ended a watch: " + response.cancel_reason());
  }
  for (const auto& [revision, events] : steps_of(response)) {
    if (watcher->over) return;  // the handler may have destroyed it
    if (watcher->handler.events) watcher->handler.events(revision, events);
  }
}

// Told later: whoever is told may watch anew at once, and calls may be under way on the stack.
void Watches::lose(const std::shared_ptr<Watcher>& watcher) {
  if (watcher->over) return;
  watcher->over = true;
  if (watcher->stream) watcher->stream->cancel();
  calls_.defer([weak = Weak(watcher)] {
    const auto found = weak.lock();
    if (found && found->handler.lost) found->handler.lost();
  });
}

void Watches::lose_all() {
  for (const Weak& weak : std::vector<Weak>(watchers_)) {
    const auto watcher = weak.lock();
    if (watcher && watcher->stream) lose(watcher);  // others wait for a member yet
  }
}

void Watches::run() {
  const SteadyTime now = clock_.steady_now();
  for (const Weak& weak : std::vector<Weak>(watchers_)) {
    const auto watcher = weak.lock();
    if (!watcher || watcher->over || watcher->begun || !watcher->stream) continue;
    if (watcher->deadline > now) continue;
    lose(watcher);
    members_.ended(watcher->use, {grpc::StatusCode::DEADLINE_EXCEEDED, "a watch was not begun"});
  }
}

std::optional<SteadyTime> Watches::next_due() const {
  std::optional<SteadyTime> due;
  for (const Weak& weak : watchers_) {
    const auto watcher = weak.lock();
    if (!watcher || watcher->over || watcher->begun || !watcher->stream) continue;
    due = std::min(due.value_or(SteadyTime::max()), watcher->deadline);
  }
  return due;
}

}  // namespace weir::etcd
