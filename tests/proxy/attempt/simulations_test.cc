// Two public simulations of what retries do to a service, with Weir's own decisions in them. Time
// is virtual, every run has its seed.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

#include "proxy/attempt/backoff.h"
#include "proxy/attempt/retry_budget.h"
#include "proxy/attempt/retry_throttle.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Engine = std::mt19937_64;

double uniform(Engine& engine) { return std::uniform_real_distribution<>(0, 1)(engine); }

// What happens when, in order.
class Events {
 public:
  using Action = std::function<void()>;
  void at(double time, Action action) { queue_.push({time, number_++, std::move(action)}); }
  double now() const { return now_; }
  void run(double until = 1e18) {
    while (!queue_.empty() && queue_.top().time <= until) {
      Event event = queue_.top();
      queue_.pop();
      now_ = event.time;
      event.action();
    }
  }

 private:
  struct Event {
    double time;
    std::uint64_t number;
    Action action;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  std::priority_queue<Event> queue_;
  double now_ = 0;
  std::uint64_t number_ = 0;
};

// S-1: clients that write one row under optimistic locking (aws-arch-backoff-simulator).
struct Contention {
  double calls = 0, time = 0;  // writes; ms
};

class ContentionRun {
 public:
  ContentionRun(int clients, const std::optional<BackoffOptions>& backoff, std::uint64_t seed)
      : engine_(seed) {
    for (int i = 0; i < clients; ++i) {
      backoffs_.emplace_back(backoff ? std::optional<Backoff>(*backoff) : std::nullopt);
    }
    for (std::size_t i = 0; i < backoffs_.size(); ++i) read(i, 0);
    events_.run();
    result_.time = events_.now();
  }
  Contention result() const { return result_; }

 private:
  double hop() { return std::abs(std::normal_distribution<>(10, 2)(engine_)); }
  void read(std::size_t client, double wait) {
    events_.at(events_.now() + wait + hop(), [this, client] {
      const int seen = version_;
      const double there_and_back = hop() + hop();
      events_.at(events_.now() + there_and_back, [this, client, seen] { write(client, seen); });
    });
  }
  void write(std::size_t client, int seen) {
    ++result_.calls;
    const bool won = seen == version_;
    if (won) ++version_;
    events_.at(events_.now() + hop(), [this, client, won] {
      if (won) return;
      auto& backoff = backoffs_[client];
      read(client,
           backoff
               ? std::chrono::duration<double, std::milli>(backoff->next(uniform(engine_))).count()
               : 0);
    });
  }

  Engine engine_;
  Events events_;
  std::vector<std::optional<Backoff>> backoffs_;
  int version_ = 0;
  Contention result_;
};

Contention mean_contention(int clients, const std::optional<BackoffOptions>& backoff, int runs) {
  Contention mean;
  for (int seed = 1; seed <= runs; ++seed) {
    const Contention run =
        ContentionRun(clients, backoff, static_cast<std::uint64_t>(seed)).result();
    mean.calls += run.calls / runs;
    mean.time += run.time / runs;
  }
  return mean;
}

BackoffOptions doubling(Jitter jitter) { return {10ms, 2s, 2, jitter}; }
const BackoffOptions kDecorrelated{5ms, 2s, 1, Jitter::decorrelated};

TEST(Contention, CallsAndTimesAreThoseOfTheSimulator) {  // S-1
  struct Row {
    int clients;
    Contention none, exponential, decorrelated, equal, full;
  };
  const Row rows[] = {
      // Of ten clients one run's time varies by a third, and the mean of a hundred by 3 %: there
      // the
      // simulator has 758 ms for `equal`, where 2,000 runs of this one have 725.
      {10, {50, 377}, {51, 3515}, {37, 428}, {43, 725}, {39, 470}},
      {50, {688, 1136}, {626, 36340}, {371, 2229}, {346, 4313}, {333, 2820}},
      {100, {2424, 2032}, {1858, 63249}, {999, 4560}, {813, 6573}, {796, 4818}},
      {190, {8007, 3537}, {5177, 101417}, {2431, 7835}, {1761, 9506}, {1773, 7400}},
  };
  for (const Row& row : rows) {
    const std::tuple<const char*, std::optional<BackoffOptions>, Contention> kinds[] = {
        {"none", std::nullopt, row.none},
        {"exponential", doubling(Jitter::none), row.exponential},
        {"decorrelated", kDecorrelated, row.decorrelated},
        {"equal", doubling(Jitter::equal), row.equal},
        {"full", doubling(Jitter::full), row.full},
    };
    for (const auto& [name, backoff, expected] : kinds) {
      const Contention mean = mean_contention(row.clients, backoff, row.clients == 10 ? 2000 : 100);
      EXPECT_NEAR(mean.calls / expected.calls, 1, 0.04) << name << " of " << row.clients;
      EXPECT_NEAR(mean.time / expected.time, 1, 0.04) << name << " of " << row.clients;
    }
  }
}

TEST(Contention, FullJitterMakesTheFewestCalls) {  // S-1
  constexpr int kRuns = 400;
  const Contention none = mean_contention(100, std::nullopt, kRuns);
  const Contention exponential = mean_contention(100, doubling(Jitter::none), kRuns);
  const Contention decorrelated = mean_contention(100, kDecorrelated, kRuns);
  const Contention equal = mean_contention(100, doubling(Jitter::equal), kRuns);
  const Contention full = mean_contention(100, doubling(Jitter::full), kRuns);
  EXPECT_LT(full.calls, 0.5 * exponential.calls);
  EXPECT_LT(full.calls, equal.calls);
  EXPECT_LT(equal.calls, decorrelated.calls);
  EXPECT_LT(decorrelated.calls, exponential.calls);
  EXPECT_LT(exponential.calls, none.calls);
  EXPECT_LT(none.time, decorrelated.time);
  EXPECT_LT(decorrelated.time, full.time);
  EXPECT_LT(full.time, equal.time);
  EXPECT_LT(equal.time, 0.2 * exponential.time);
  EXPECT_GT(none.calls, 0.22 * 100 * 100);
  EXPECT_LT(none.calls, 0.28 * 100 * 100);
}

// S-3: a service that slows down with its load, and a spike that it must come back from
// (simple_collapse_sim).
struct Policy {
  std::function<void(double now)> on_start, on_success;
  std::function<bool(double now)> may_retry;
  std::function<double(int tried, Engine&)> backoff;  // seconds
};

class CollapseRun {
 public:
  CollapseRun(Policy policy, double spike, std::uint64_t seed)
      : policy_(std::move(policy)), spike_(spike), engine_(seed) {
    arrive();
    events_.run(79);
  }
  bool collapsed() const { return succeeded_ < started_ / 2; }
  int retries() const { return retries_; }

 private:
  double exponential(double mean) { return std::exponential_distribution<>(1 / mean)(engine_); }
  bool judged(double time) const { return time >= 70 && time < 79; }

  void arrive() {
    const double now = events_.now();
    const bool in_spike = now >= 20 && now < 20 + spike_;
    events_.at(now + exponential(1.0 / (in_spike ? 80 : 40)), [this] {
      if (policy_.on_start) policy_.on_start(events_.now());
      if (judged(events_.now())) ++started_;
      attempt(1);
      arrive();
    });
  }
  void attempt(int number) {
    const auto answered = std::make_shared<bool>(false);
    const auto given_up = std::make_shared<bool>(false);
    events_.at(events_.now() + exponential(0.1), [this, answered, given_up] {
      ++concurrency_;
      events_.at(events_.now() + 1 + 0.01 * concurrency_, [this, answered, given_up] {
        --concurrency_;
        events_.at(events_.now() + exponential(0.1), [this, answered, given_up] {
          if (*given_up) return;
          *answered = true;
          if (judged(events_.now())) ++succeeded_;
          if (policy_.on_success) policy_.on_success(events_.now());
        });
      });
    });
    events_.at(events_.now() + 3, [this, answered, given_up, number] {
      if (*answered) return;
      *given_up = true;
      if (number == 3 || (policy_.may_retry && !policy_.may_retry(events_.now()))) return;
      ++retries_;
      const double wait = policy_.backoff ? policy_.backoff(number, engine_) : 0;
      events_.at(events_.now() + wait, [this, number] { attempt(number + 1); });
    });
  }

  Policy policy_;
  const double spike_;
  Engine engine_;
  Events events_;
  int concurrency_ = 0, started_ = 0, succeeded_ = 0, retries_ = 0;
};

struct Collapses {
  int runs = 0;
  double retries = 0;  // the mean
};

Collapses collapses(const std::function<Policy()>& policy, double spike, int runs = 30) {
  Collapses result;
  for (int seed = 1; seed <= runs; ++seed) {
    const CollapseRun run(policy(), spike, static_cast<std::uint64_t>(seed));
    result.runs += run.collapsed() ? 1 : 0;
    result.retries += static_cast<double>(run.retries()) / runs;
  }
  return result;
}

SteadyTime steady(double seconds) {
  return SteadyTime{} +
         std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(seconds));
}

Policy unbounded() { return {}; }
Policy with_backoff() {
  Policy policy;
  policy.backoff = [](int tried, Engine& engine) { return uniform(engine) * 10 * (1 << tried); };
  return policy;
}
// Tokens that a success or a start brings a tenth of, at most ten.
Policy with_bucket(std::function<void(double)> Policy::* when) {
  Policy policy;
  const auto tokens = std::make_shared<double>(10);
  policy.*when = [tokens](double) { *tokens = std::min(10.0, *tokens + 0.1); };
  policy.may_retry = [tokens](double) { return *tokens >= 1 && (*tokens -= 1, true); };
  return policy;
}
Policy with_throttle() {
  Policy policy;
  const auto throttle = std::make_shared<RetryThrottle>(RetryThrottling{10'000, 100});
  policy.on_success = [throttle](double) { throttle->success(); };
  policy.may_retry = [throttle](double) { return throttle->failure(); };
  return policy;
}
Policy with_budget(double share, int min_per_second) {
  Policy policy;
  const auto budget = std::make_shared<RetryBudget>(share, min_per_second, 10s, SteadyTime{});
  policy.on_start = [budget](double now) { budget->on_first_try(steady(now)); };
  policy.may_retry = [budget](double now) { return budget->try_retry(steady(now)); };
  return policy;
}

TEST(Collapse, WithoutABudgetASpikeOfTenSecondsIsNeverRecoveredFrom) {  // S-3
  EXPECT_EQ(collapses(unbounded, 10).runs, 30);
  EXPECT_EQ(collapses(unbounded, 20).runs, 30);
  EXPECT_NEAR(collapses(unbounded, 10).retries / 4616, 1, 0.04);
  // The simulator has 21 of 30, give or take 2.5; more runs than its thirty say it more exactly.
  EXPECT_NEAR(collapses(unbounded, 5, 200).runs / 200.0, 21 / 30.0, 2.5 / 30);
}

TEST(Collapse, BackoffHelpsAgainstAShortSpikeOnly) {  // S-3
  EXPECT_EQ(collapses(with_backoff, 5).runs, 0);
  EXPECT_EQ(collapses(with_backoff, 10).runs, 30);
  EXPECT_NEAR(collapses(with_backoff, 10).retries / 4224, 1, 0.04);
  EXPECT_EQ(collapses(with_backoff, 20).runs, 30);
}

TEST(Collapse, WithASharedBudgetEverySpikeIsRecoveredFrom) {  // S-3
  const std::pair<const char*, std::function<Policy()>> policies[] = {
      {"tokens per success", [] { return with_bucket(&Policy::on_success); }},
      {"tokens per start", [] { return with_bucket(&Policy::on_start); }},
      {"gRPC's throttle", with_throttle},
      {"a budget of a tenth", [] { return with_budget(0.1, 0); }},
  };
  for (const auto& [name, policy] : policies) {
    for (double spike : {5.0, 10.0, 20.0}) {
      EXPECT_EQ(collapses(policy, spike).runs, 0) << name << ", " << spike << " s";
    }
  }
  constexpr int kRuns = 300;
  EXPECT_NEAR(collapses(policies[0].second, 10, kRuns).retries / 24, 1, 0.04);
  EXPECT_NEAR(collapses(policies[1].second, 10, kRuns).retries / 80, 1, 0.04);
  EXPECT_NEAR(collapses(policies[1].second, 20, kRuns).retries / 173, 1, 0.04);
  EXPECT_NEAR(collapses(with_throttle, 10, kRuns).retries / 10, 1, 0.04);
}

}  // namespace
}  // namespace weir
