#pragma once

// What the proxy counts. One set per loop, written by its thread alone and read by whoever renders
// metrics; so the counters are atomic but never contended.

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace weir {

// How a request ended.
enum class Ending {
  ok,
  client_gone,
  malformed,
  queue_full,
  draining,
  upstream_unreachable,
  upstream_failed,
  upstream_timeout,
};
inline constexpr std::size_t kEndings = 8;
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

struct RuleStats {
  std::array<Counter, kEndings> endings;
  void count(Ending ending) { endings[static_cast<std::size_t>(ending)].add(); }
};

struct UpstreamStats {
  Counter first_attempts;
  Counter transparent_attempts;  // in place of one that a closed connection swallowed
};

class ProxyStats {
 public:
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
