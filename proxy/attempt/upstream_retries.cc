#include "proxy/attempt/upstream_retries.h"

namespace weir {

bool is_idempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS" || method == "TRACE";
}

UpstreamRetries::Budget::Budget(const RetryBudgetOptions& of, SteadyTime now)
    : options(of), budget(of.percent / 100, of.min_per_second, of.ttl, now) {}

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
  std::lock_guard lock(budget_->mutex);
  budget_->budget.on_first_try(now);
}

bool UpstreamRetries::pay(SteadyTime now) {
  std::lock_guard lock(budget_->mutex);
  return budget_->budget.try_retry(now);
}

}  // namespace weir
