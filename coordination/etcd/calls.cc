#include "coordination/etcd/calls.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace weir::etcd {

struct Calls::State {
  explicit State(Post to) : post(std::move(to)) {}

  std::mutex mutex;
  std::condition_variable landed;
  // Guarded by mutex:
  bool open = true;
  std::size_t in_the_air = 0;
  Post post;  // called with the mutex held: never after the owner is gone
  // Touched on the loop alone.
  Calls* owner = nullptr;
};

bool Calls::Landing::post(std::function<void()> step) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->open) return false;
  state_->post([state = state_, run = std::move(step)] {
    if (state->owner) run();
  });
  return true;
}

void Calls::Landing::land() const {
  // Once it is posted the loop may destroy the call at any moment, and this with it.
  const std::shared_ptr<State> state = state_;
  const std::lock_guard lock(state->mutex);
  if (state->open) {
    state->post([state, id = id_] {
      if (!state->owner) return;
      const auto over = state->owner->under_way_.extract(id);
      if (!over.empty()) over.mapped()->finish();
    });
  }
  --state->in_the_air;
  state->landed.notify_all();
}

Calls::Calls(Post post) : state_(std::make_shared<State>(std::move(post))) { state_->owner = this; }

Calls::~Calls() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->open = false;
  }
  state_->owner = nullptr;
  for (const auto& [id, call] : under_way_) call->cancel();
  std::unique_lock lock(state_->mutex);
  state_->landed.wait(lock, [this] { return state_->in_the_air == 0; });
  state_->post = nullptr;  // a thread of gRPC may hold on to the state a little longer
}

Calls::Landing Calls::add(std::unique_ptr<Call> call) {
  const std::uint64_t id = ++last_id_;
  under_way_.emplace(id, std::move(call));
  const std::lock_guard lock(state_->mutex);
  ++state_->in_the_air;
  return {state_, id};
}

void Calls::defer(std::function<void()> step) { Landing(state_, 0).post(std::move(step)); }

}  // namespace weir::etcd
