#include "daemon/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

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
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> sums;
  for (const ProxyStats* loop : loops) {
    loop->each_upstream([&](const std::string& upstream, const UpstreamStats& stats) {
      sums[upstream].first += stats.first_attempts.value();
      sums[upstream].second += stats.transparent_attempts.value();
    });
  }
  auto result = family("weir_attempts_total", "Attempts to get an answer from an upstream",
                       MetricType::Counter);
  for (const auto& [upstream, counts] : sums) {
    add_counter(result, {{"upstream", upstream}, {"kind", "first"}}, counts.first);
    add_counter(result, {{"upstream", upstream}, {"kind", "transparent"}}, counts.second);
  }
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
      family("weir_build_info", "Always 1; the version is in the label", MetricType::Gauge);
  ClientMetric metric;
  metric.label = {{"version", WEIR_VERSION}};
  metric.gauge.value = 1;
  result.metric.push_back(std::move(metric));
  return result;
}

}  // namespace

std::string metrics_text(std::span<const ProxyStats* const> loops, const DaemonStats& daemon) {
  return prometheus::TextSerializer{}.Serialize(
      {requests(loops), attempts(loops), reloads(daemon), build_info()});
}

}  // namespace weir
