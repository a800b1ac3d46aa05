#include "proxy/attempt/upstream_retries.h"

namespace weir {

bool is_idempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS" || method == "TRACE";
}

UpstreamRetries::Budget::Budget(const RetryBudgetOptions& of, SteadyTime now)
    : options(of), budget(of.percent / 100, of.min_per_second, of.ttl, now) {}

// Other options, the same upstream: what was learned of it stays.
UpstreamRetries::Bucket::Bucket(const DynamicBucketOptions& of, const Bucket* previous,
                                SteadyTime now)
    : options(of),
      bucket({.window = of.window,
              .retry_share = of.retry_share,
              .rate = previous ? previous->view(now).rate : DynamicBucket::Options{}.rate},
             now) {}

DynamicBucket::View UpstreamRetries::Bucket::view(SteadyTime now) const {
  std::lock_guard lock(mutex);
  return bucket.view(now);
}

std::shared_ptr<UpstreamRetries> UpstreamRetries::make(const UpstreamOptions& options,
                                                       const UpstreamRetries* previous,
                                                       SteadyTime now) {
  if (options.service_config.empty()) return nullptr;
  auto made = std::make_shared<UpstreamRetries>();
  made->config_ = std::move(ServiceConfig::read(options.service_config).config);
  made->retry_non_idempotent_ = options.retry_non_idempotent;
  made->retries_ = options.retries;
  if (const auto& throttling = made->config_.throttling()) {
    made->throttle_ =
        RetryThrottle::successor(previous ? previous->throttle_ : nullptr, *throttling);
  }
  const bool same_budget = previous && previous->budget_->options == options.retry_budget;
  made->budget_ =
      same_budget ? previous->budget_ : std::make_shared<Budget>(options.retry_budget, now);
  if (options.dynamic_bucket.enabled) {
    const auto old = previous ? previous->bucket_ : nullptr;
    const bool same = old && old->options == options.dynamic_bucket;
    made->bucket_ = same ? old : std::make_shared<Bucket>(options.dynamic_bucket, old.get(), now);
  }
  made->replay_room_ = previous ? previous->replay_room_ : std::make_shared<ReplayRoom>();
  return made;
}

CallPolicy UpstreamRetries::policy_for(std::string_view method, std::string_view path) const {
  const ServiceConfig::Found found = config_.find(path);
  if (!found.config) return {};
  CallPolicy policy;
  policy.timeout = found.config->timeout;
  policy.attempt_timeout = found.config->attempt_timeout;
  const bool may_repeat =
      is_idempotent(method) || retry_non_idempotent_ || found.named == ServiceConfig::Named::path;
  if (retries_ && may_repeat) {
    policy.retry = found.config->retry();
    policy.hedging = found.config->hedging();
  }
  return policy;
}

void UpstreamRetries::on_first_try(SteadyTime now) {
  {
    std::lock_guard lock(budget_->mutex);
    budget_->budget.on_first_try(now);
  }
  if (!bucket_) return;
  std::lock_guard lock(bucket_->mutex);
  bucket_->bucket.on_first_try(now);
}

bool UpstreamRetries::pay(SteadyTime now) {
  std::lock_guard lock(budget_->mutex);
  if (bucket_) {  // which is not asked for what the budget cannot pay
    if (budget_->budget.affordable(now) < 1) return false;
    std::lock_guard bucket_lock(bucket_->mutex);
    if (!bucket_->bucket.try_retry(now)) return false;
  }
  return budget_->budget.try_retry(now);
}

void UpstreamRetries::on_end(Load load, SteadyTime now) {
  if (!bucket_ || load == Load::unknown) return;
  std::lock_guard lock(bucket_->mutex);
  load == Load::borne ? bucket_->bucket.on_success(now) : bucket_->bucket.on_overload(now);
}

UpstreamRetries::View UpstreamRetries::view(SteadyTime now) const {
  View view;
  {
    std::lock_guard lock(budget_->mutex);
    view.affordable = budget_->budget.affordable(now);
  }
  if (bucket_) view.bucket = bucket_->view(now);
  return view;
}

}  // namespace weir
