#pragma once

// What the proxy counts. One set per loop, written by its thread alone and read by whoever renders
// metrics; so the counters are atomic but never contended.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "proxy/attempt/retry_refusal.h"

namespace weir {

// How a request ended.
enum class Ending {
  ok,
  shadow_denied,  // passed, though the limit would have held it back
  client_gone,
  malformed,
  limit,
  store_unavailable,
  queue_full,
  draining,
  upstream_unreachable,
  upstream_failed,
  upstream_timeout,
  deadline,  // of all attempts together
  cooldown,
  throttled,
};
inline constexpr std::size_t kEndings = 14;
std::string_view to_string(Ending ending);

class Counter {
 public:
  // Only from the owning thread, so that no locked instruction is needed.
  void add(std::uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Durations by upper bounds in seconds, or other numbers passed as such. Written like a Counter.
template <std::size_t kBounds>
class Histogram {
 public:
  explicit Histogram(const std::array<double, kBounds>& bounds) : bounds_(bounds) {}

  void observe(std::chrono::duration<double> value) {
    std::size_t i = 0;
    while (i < kBounds && value.count() > bounds_[i]) ++i;
    counts_[i].add();
    sum_.store(sum_.load(std::memory_order_relaxed) + value.count(), std::memory_order_relaxed);
  }

  const std::array<double, kBounds>& bounds() const { return bounds_; }
  std::uint64_t count(std::size_t i) const { return counts_[i].value(); }  // of kBounds + 1
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::array<double, kBounds> bounds_;
  std::array<Counter, kBounds + 1> counts_;  // the last: above every bound
  std::atomic<double> sum_{0};
};

struct RuleStats {
  std::array<Counter, kEndings> endings;
  Counter units_spent;
  void count(Ending ending) { endings[static_cast<std::size_t>(ending)].add(); }
};

struct UpstreamStats {
  Counter first_attempts;
  Counter retry_attempts;        // after a failed one, by policy
  Counter hedge_attempts;        // beside another
  Counter transparent_attempts;  // in place of one that a closed connection swallowed
  Counter cooldown_waits;        // requests that a cooldown held back
  Counter throttled;             // attempts that the throttle did not let go, or not at once
};

class ProxyStats {
 public:
  // From the later of a request's start and the start of the window it is forwarded in, to the
  // moment it is forwarded: what Weir adds beyond the waiting that was asked for.
  Histogram<13> admission_overhead{
      {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5}};
  // Each wait for a unit, a cooldown or a throttle; one request may have several.
  Histogram<12> wait{{0.005, 0.025, 0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 900}};
  // Retries and hedges of one request, where there were any. By number, not by time.
  Histogram<5> retries_per_request{{1, 2, 3, 4, 5}};
  std::array<Counter, kRetryRefusals> retry_refusals;  // by RetryRefusal

  // Made when first asked for, and never taken back: a rule that a reload removes keeps its counts.
  RuleStats& rule(const std::string& name);
  UpstreamStats& upstream(const std::string& name);

  // Any thread.
  template <class Visit>
  void each_rule(Visit visit) const {
    std::lock_guard lock(mutex_);
    for (const auto& [name, stats] : rules_) visit(name, *stats);
  }
  template <class Visit>
  void each_upstream(Visit visit) const {
    std::lock_guard lock(mutex_);
    for (const auto& [name, stats] : upstreams_) visit(name, *stats);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<RuleStats>> rules_;          // guarded by mutex_
  std::map<std::string, std::unique_ptr<UpstreamStats>> upstreams_;  // guarded by mutex_
};

}  // namespace weir
