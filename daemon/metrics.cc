#include "daemon/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <map>

namespace weir {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Labels = std::vector<ClientMetric::Label>;

MetricFamily family(std::string name, std::string help, MetricType type) {
  return {std::move(name), std::move(help), type, {}};
}

void add_counter(MetricFamily& to, Labels labels, std::uint64_t value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = static_cast<double>(value);
  to.metric.push_back(std::move(metric));
}

MetricFamily requests(std::span<const ProxyStats* const> loops) {
  std::map<std::pair<std::string, std::size_t>, std::uint64_t> sums;
  for (const ProxyStats* loop : loops) {
    loop->each_rule([&](const std::string& rule, const RuleStats& stats) {
      for (std::size_t i = 0; i < kEndings; ++i) sums[{rule, i}] += stats.endings[i].value();
    });
  }
  auto result =
      family("weir_requests_total", "Requests by rule and by how they ended", MetricType::Counter);
  for (const auto& [key, value] : sums) {
    const auto ending = static_cast<Ending>(key.second);
    if (value == 0 && ending != Ending::ok) continue;
    add_counter(result, {{"rule", key.first}, {"outcome", std::string{to_string(ending)}}}, value);
  }
  return result;
}

MetricFamily attempts(std::span<const ProxyStats* const> loops) {
  constexpr std::pair<const char*, Counter UpstreamStats::*> kKinds[] = {
      {"first", &UpstreamStats::first_attempts},
      {"retry", &UpstreamStats::retry_attempts},
      {"hedge", &UpstreamStats::hedge_attempts},
      {"transparent", &UpstreamStats::transparent_attempts}};
  std::map<std::pair<std::string, std::string>, std::uint64_t> sums;
  for (const ProxyStats* loop : loops) {
    loop->each_upstream([&](const std::string& upstream, const UpstreamStats& stats) {
      for (const auto& [kind, counter] : kKinds) sums[{upstream, kind}] += (stats.*counter).value();
    });
  }
  auto result = family("weir_attempts_total", "Attempts to get an answer from an upstream",
                       MetricType::Counter);
  for (const auto& [key, value] : sums) {
    add_counter(result, {{"upstream", key.first}, {"kind", key.second}}, value);
  }
  return result;
}

MetricFamily by_upstream(std::string name, std::string help, Counter UpstreamStats::* counter,
                         std::span<const ProxyStats* const> loops) {
  std::map<std::string, std::uint64_t> sums;
  for (const ProxyStats* loop : loops) {
    loop->each_upstream([&](const std::string& upstream, const UpstreamStats& stats) {
      sums[upstream] += (stats.*counter).value();
    });
  }
  auto result = family(std::move(name), std::move(help), MetricType::Counter);
  for (const auto& [upstream, value] : sums) add_counter(result, {{"upstream", upstream}}, value);
  return result;
}

MetricFamily throttle_rates(const Throttles& throttles) {
  auto result =
      family("weir_throttle_rate",
             "What the throttle has learned: requests per second and bucket, or under way",
             MetricType::Gauge);
  for (const auto& [upstream, facts] : throttles.facts()) {
    ClientMetric metric;
    metric.label = {{"upstream", upstream}};
    metric.gauge.value = facts.rate;
    result.metric.push_back(std::move(metric));
  }
  return result;
}

MetricFamily retry_refusals(std::span<const ProxyStats* const> loops) {
  auto result = family("weir_retry_refused_total", "Attempts not made, by what kept them away",
                       MetricType::Counter);
  for (std::size_t i = 1; i < kRetryRefusals; ++i) {
    std::uint64_t sum = 0;
    for (const ProxyStats* loop : loops) sum += loop->retry_refusals[i].value();
    add_counter(result, {{"reason", std::string{to_string(static_cast<RetryRefusal>(i))}}}, sum);
  }
  return result;
}

MetricFamily single(std::string name, std::string help, MetricType type, double value) {
  auto result = family(std::move(name), std::move(help), type);
  ClientMetric metric;
  (type == MetricType::Gauge ? metric.gauge.value : metric.counter.value) = value;
  result.metric.push_back(std::move(metric));
  return result;
}

// `counts` has one more than there are bounds: what lies above them all.
MetricFamily histogram(std::string name, std::string help, std::span<const double> bounds,
                       std::span<const std::uint64_t> counts, double sum) {
  auto result = family(std::move(name), std::move(help), MetricType::Histogram);
  ClientMetric metric;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    total += counts[i];
    metric.histogram.bucket.push_back({total, bounds[i]});
  }
  metric.histogram.sample_count = total + counts.back();
  metric.histogram.sample_sum = sum;
  result.metric.push_back(std::move(metric));
  return result;
}

template <std::size_t kBounds>
MetricFamily histogram(std::string name, std::string help, std::span<const ProxyStats* const> loops,
                       Histogram<kBounds> ProxyStats::* member) {
  std::array<std::uint64_t, kBounds + 1> counts{};
  double sum = 0;
  for (const ProxyStats* loop : loops) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += (loop->*member).count(i);
    sum += (loop->*member).sum();
  }
  return histogram(std::move(name), std::move(help), (loops.front()->*member).bounds(), counts,
                   sum);
}

MetricFamily claims(const CoordinatorStats& stats) {
  auto result = family("weir_claims_total", "Claims of units, by result", MetricType::Counter);
  add_counter(result, {{"result", "granted"}}, stats.granted);
  add_counter(result, {{"result", "short"}}, stats.short_of);
  add_counter(result, {{"result", "conflict"}}, stats.conflict);
  add_counter(result, {{"result", "unknown"}}, stats.unknown);
  add_counter(result, {{"result", "failed"}}, stats.failed);
  return result;
}

MetricFamily claim_seconds(const CoordinatorStats& stats) {
  std::array<std::uint64_t, CoordinatorStats::kBounds.size() + 1> counts;
  std::copy(stats.claim_seconds.begin(), stats.claim_seconds.end(), counts.begin());
  return histogram("weir_claim_seconds", "How long claims took", CoordinatorStats::kBounds, counts,
                   stats.claim_seconds_sum);
}

MetricFamily units(std::span<const ProxyStats* const> loops, const Coordinator& coordinator) {
  std::map<std::string, std::uint64_t> spent;
  for (const ProxyStats* loop : loops) {
    loop->each_rule([&](const std::string& rule, const RuleStats& stats) {
      spent[rule] += stats.units_spent.value();
    });
  }
  auto result =
      family("weir_units_total", "Units by rule and by what became of them", MetricType::Counter);
  coordinator.each_policy([&](const Policy& policy) {
    const std::string& rule = policy.name();
    add_counter(result, {{"rule", rule}, {"event", "claimed"}}, policy.claimed);
    add_counter(result, {{"rule", rule}, {"event", "spent"}}, spent[rule]);
    add_counter(result, {{"rule", rule}, {"event", "returned"}}, policy.returned);
    add_counter(result, {{"rule", rule}, {"event", "lost"}}, policy.lost);
  });
  return result;
}

MetricFamily reloads(const DaemonStats& daemon) {
  auto result =
      family("weir_config_reloads_total", "Configuration files read anew", MetricType::Counter);
  add_counter(result, {{"result", "ok"}}, daemon.reloads_ok);
  add_counter(result, {{"result", "failed"}}, daemon.reloads_failed);
  return result;
}

MetricFamily build_info() {
  auto result =
      single("weir_build_info", "Always 1; the version is in the label", MetricType::Gauge, 1);
  result.metric.front().label = {{"version", WEIR_VERSION}};
  return result;
}

}  // namespace

std::string metrics_text(std::span<const ProxyStats* const> loops, Coordinator& coordinator,
                         const Throttles& throttles, const DaemonStats& daemon) {
  return prometheus::TextSerializer{}.Serialize(
      {requests(loops),
       histogram("weir_admission_overhead_seconds",
                 "From the later of a request's and its window's start to its forwarding", loops,
                 &ProxyStats::admission_overhead),
       histogram("weir_wait_seconds", "Waits for a unit, a cooldown or a throttle", loops,
                 &ProxyStats::wait),
       single("weir_waiting", "Requests that wait", MetricType::Gauge,
              static_cast<double>(coordinator.room().waiting)),
       claims(coordinator.stats()), claim_seconds(coordinator.stats()), units(loops, coordinator),
       single("weir_store_up", "1 if the store answers", MetricType::Gauge,
              coordinator.stats().store_up ? 1 : 0),
       single("weir_degraded_seconds_total", "Time without the store", MetricType::Counter,
              coordinator.degraded().count()),
       single("weir_resources", "Resources remembered", MetricType::Gauge,
              static_cast<double>(coordinator.resources().size())),
       single("weir_overflow_total", "Requests counted for an overflow resource",
              MetricType::Counter, static_cast<double>(coordinator.resources().overflows())),
       attempts(loops),
       histogram("weir_retries_per_request", "Retries and hedges of requests that had any", loops,
                 &ProxyStats::retries_per_request),
       retry_refusals(loops), throttle_rates(throttles),
       by_upstream("weir_throttled_total", "Attempts that a throttle did not let go at once",
                   &UpstreamStats::throttled, loops),
       by_upstream("weir_cooldown_waits_total", "Requests that a cooldown held back",
                   &UpstreamStats::cooldown_waits, loops),
       reloads(daemon), build_info()});
}

}  // namespace weir
