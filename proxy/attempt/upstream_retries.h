#pragma once

// What all calls to one upstream share about trying again: its service config, the throttle, the
// budget, the dynamic bucket and the room for bodies. Made by the daemon for each configuration,
// out of what the last one left; shared by all workers, any thread. An upstream without a service
// config has none of it.

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "proxy/attempt/dynamic_bucket.h"
#include "proxy/attempt/replay_body.h"
#include "proxy/attempt/retry_budget.h"
#include "proxy/attempt/service_config.h"
#include "proxy/upstream_options.h"

namespace weir {

// What the configuration says about one request. Points into the UpstreamRetries.
struct CallPolicy {
  const RetryPolicy* retry = nullptr;
  const HedgingPolicy* hedging = nullptr;
  std::optional<std::chrono::nanoseconds> attempt_timeout, timeout;
};

bool is_idempotent(std::string_view method);

class UpstreamRetries {
 public:
  // nullptr where nothing is configured. The options have been checked; `previous` may be nullptr.
  static std::shared_ptr<UpstreamRetries> make(const UpstreamOptions& options,
                                               const UpstreamRetries* previous, SteadyTime now);

  // `path` is the one that is counted. Requests that must not be served twice have a policy only
  // where one names their path, or where that was allowed for all.
  CallPolicy policy_for(std::string_view method, std::string_view path) const;

  RetryThrottle* throttle() const { return throttle_.get(); }
  ReplayRoom& replay_room() { return *replay_room_; }

  void on_first_try(SteadyTime now);
  // Pays for a retry or a hedge; false: it cannot be afforded, and nothing was paid.
  bool pay(SteadyTime now);
  // How an attempt ended, for what learns from it.
  void on_end(Load load, SteadyTime now);

  struct View {
    std::int64_t affordable = 0;                // retries that the budget could pay for now
    std::optional<DynamicBucket::View> bucket;  // where it is enabled
  };
  View view(SteadyTime now) const;

 private:
  struct Budget {
    Budget(const RetryBudgetOptions& options, SteadyTime now);
    const RetryBudgetOptions options;
    std::mutex mutex;
    RetryBudget budget;  // guarded by mutex
  };
  struct Bucket {
    Bucket(const DynamicBucketOptions& options, const Bucket* previous, SteadyTime now);
    DynamicBucket::View view(SteadyTime now) const;
    const DynamicBucketOptions options;
    mutable std::mutex mutex;      // taken behind the budget's, where both are
    mutable DynamicBucket bucket;  // guarded by mutex; looking at it lets its time pass
  };

  ServiceConfig config_;
  bool retry_non_idempotent_ = false;
  bool retries_ = true;
  std::shared_ptr<RetryThrottle> throttle_;  // nullptr: none configured
  std::shared_ptr<Budget> budget_;
  std::shared_ptr<Bucket> bucket_;  // nullptr: not enabled
  std::shared_ptr<ReplayRoom> replay_room_;
};

}  // namespace weir
