#pragma once

// The cooldowns of all upstreams. They live on from one configuration to the next, and are shared
// by the workers with the coordination thread, which tells other replicas of them. Any thread.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coordination/base/clock.h"
#include "proxy/cooldown.h"
#include "proxy/upstream_options.h"

namespace weir {

class Cooldowns final : public CooldownMemory {
 public:
  // `changed` is called by any thread when take_changes() has something; empty: nobody will ask.
  Cooldowns(const Clock& clock, std::function<void()> changed);

  // The upstream's gate, as it is configured now; nullptr: it has none.
  std::shared_ptr<Cooldown> configure(const UpstreamOptions& upstream);
  // Nobody is held any more.
  void drain();
  // For the admin address; empty: there are none.
  std::vector<CooldownView> view(const std::string& upstream) const;
  // The gate that the upstream has, or had last; nullptr: it never had one.
  std::shared_ptr<Cooldown> gate(const std::string& upstream) const;

  std::vector<Change> take_changes() override;
  std::optional<Kept> find(const CooldownKey& key) const override;
  void learn(const CooldownKey& key, const CooldownRecord& record) override;
  void forget(const CooldownKey& key) override;

 private:
  const Clock& clock_;
  std::atomic<bool> dirty_{false};
  const std::function<void()> changed_;  // tells dirty_ too
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Cooldown>> gates_;  // guarded by mutex_
};

}  // namespace weir
