#include "daemon/cooldowns.h"

namespace weir {

Cooldowns::Cooldowns(const Clock& clock, std::function<void()> changed)
    : clock_(clock), changed_([&]() -> std::function<void()> {
        if (!changed) return nullptr;
        return [this, changed = std::move(changed)] {
          dirty_ = true;
          changed();
        };
      }()) {}

std::shared_ptr<Cooldown> Cooldowns::configure(const UpstreamOptions& upstream) {
  if (!upstream.cooldown.enabled) return nullptr;
  std::lock_guard lock(mutex_);
  auto& gate = gates_[upstream.name];
  if (gate) {
    gate->configure(upstream.cooldown);
  } else {
    gate = std::make_shared<Cooldown>(upstream.cooldown, changed_);
  }
  return gate;
}

std::shared_ptr<Cooldown> Cooldowns::gate(const std::string& upstream) const {
  std::lock_guard lock(mutex_);
  const auto found = gates_.find(upstream);
  return found == gates_.end() ? nullptr : found->second;
}

void Cooldowns::drain() {
  std::lock_guard lock(mutex_);
  for (const auto& [name, gate] : gates_) gate->drain();
}

std::vector<CooldownView> Cooldowns::view(const std::string& upstream) const {
  const auto found = gate(upstream);
  return found ? found->view(clock_.steady_now()) : std::vector<CooldownView>{};
}

std::vector<CooldownMemory::Change> Cooldowns::take_changes() {
  std::vector<Change> changes;
  if (!dirty_.exchange(false)) return changes;
  std::lock_guard lock(mutex_);
  for (const auto& [upstream, gate] : gates_) {
    for (auto& [name, cleared_by] : gate->take_changes()) {
      changes.push_back({{upstream, name.project, name.status}, cleared_by});
    }
  }
  return changes;
}

std::optional<CooldownMemory::Kept> Cooldowns::find(const CooldownKey& key) const {
  const auto found = gate(key.upstream);
  return found ? found->find({key.project, key.status}) : std::nullopt;
}

void Cooldowns::learn(const CooldownKey& key, const CooldownRecord& record) {
  if (const auto found = gate(key.upstream)) {
    found->learn({key.project, key.status}, record, clock_.now());
  }
}

void Cooldowns::forget(const CooldownKey& key) {
  if (const auto found = gate(key.upstream)) found->forget({key.project, key.status});
}

}  // namespace weir
