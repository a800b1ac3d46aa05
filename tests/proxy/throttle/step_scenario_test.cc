// The scenario that the origin publishes figures of, with the figures beside ours: 150, 150, 150
// and 10 requests a second meet a server of 200, then 30, then 200 a second. Beside them what it
// would be with one of the throttles that clients of other systems use in the place of Weir's.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/proxy/throttle/others/accept_ratio.h"
#include "tests/proxy/throttle/others/blind_throttle.h"
#include "tests/proxy/throttle/others/cubic_rate.h"
#include "tests/proxy/throttle/others/retry_quota.h"
#include "tests/proxy/throttle/scenario.h"

namespace weir::test {
namespace {

constexpr int kSeeds = 5;
const std::vector<Client> kClients{{"one", 150}, {"two", 150}, {"three", 150}, {"small", 10}};
const std::vector<Phase> kPhases{{50, 500}, {550, 1000}, {1050, 1800}};

double capacity_at(double now) { return now >= 500 && now < 1000 ? 30 : 200; }

// What is in store when the upstream is full is spent on failures, each of which counts: where one
// bucket stands for all, it must not be much.
TEST(StepScenario, OneBucketWithAShortBurstKeepsTheUpstreamBusy) {
  const auto good_with = [](std::chrono::milliseconds burst) {
    SeededRandom random(1);
    FairThrottleOptions options;
    options.buckets = 1;
    options.burst = burst;
    FairThrottle throttle(options, random, at(0));
    return run_scenario(throttle, kClients, capacity_at, kPhases, random);
  };
  const auto brief = good_with(std::chrono::milliseconds{20});
  EXPECT_GE(brief[0].sum_good(), 0.99 * 200 * 450);
  EXPECT_GE(brief[1].sum_good(), 0.99 * 30 * 450);
  EXPECT_GE(brief[2].sum_good(), 0.99 * 200 * 750);
  EXPECT_LE(brief[1].offered, 1.2 * 30 * 450);
  const auto standard = good_with(std::chrono::milliseconds{500});
  EXPECT_LE(standard[0].sum_good(), 0.8 * 200 * 450) << "which is why";
}

FairThrottleOptions options_with(int probes) {
  FairThrottleOptions options;
  options.rate.initial = 200;
  options.probes = probes;
  return options;
}

using Run = std::vector<Totals> (*)(SeededRandom&);

double jain_of_heavy(const Totals& phase) {
  return jain({phase.good[0], phase.good[1], phase.good[2]});
}

// In each phase, the mean of all seeds: requests a second, and Jain's index of each run.
struct Mean : Totals {
  double jain = 0;
};
std::vector<Mean> mean_of_seeds(Run run) {
  std::vector<Mean> mean(kPhases.size());
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SeededRandom random(static_cast<std::uint64_t>(seed) << 32);
    const auto totals = run(random);
    for (std::size_t i = 0; i < totals.size(); ++i) {
      const double scale = 1 / ((kPhases[i].until - kPhases[i].from) * kSeeds);
      mean[i].good.resize(kClients.size());
      for (std::size_t client = 0; client < kClients.size(); ++client) {
        mean[i].good[client] += totals[i].good[client] * scale;
      }
      mean[i].offered += totals[i].offered * scale;
      mean[i].jain += jain_of_heavy(totals[i]) / kSeeds;
    }
  }
  return mean;
}

std::vector<Totals> run_with(Throttle& throttle, SeededRandom& random, const Again& again = {}) {
  return run_scenario(throttle, kClients, capacity_at, kPhases, random, again);
}

template <int probes>
std::vector<Totals> with_weir(SeededRandom& random) {
  FairThrottle throttle(options_with(probes), random, at(0));
  return run_with(throttle, random);
}

std::vector<Totals> with_accept_ratio(SeededRandom& random) {
  AcceptRatio ratio({});
  BlindThrottle throttle([&](SteadyTime now) { return ratio.ask(random.fraction(), now); },
                         [&](Load load, SteadyTime now) {
                           if (load == Load::borne) ratio.accepted(now);
                         });
  return run_with(throttle, random);
}

std::vector<Totals> with_cubic_rate(SeededRandom& random) {
  CubicRate rate(at(0));
  BlindThrottle throttle([&](SteadyTime now) { return rate.take(now); },
                         [&](Load load, SteadyTime now) {
                           load == Load::borne ? rate.success(now) : rate.throttled(now);
                         });
  return run_with(throttle, random);
}

// Three attempts, of which the first is never held back.
std::vector<Totals> with_retry_quota(SeededRandom& random) {
  RetryQuota quota;
  BlindThrottle open([](SteadyTime) { return true; }, [](Load, SteadyTime) {});
  return run_with(open, random, [&](int attempt, bool served) -> std::optional<double> {
    if (served) quota.success(attempt > 1 ? RetryQuota::kRetry : 0);
    if (served || attempt == 3 || !quota.take(RetryQuota::kRetry)) return std::nullopt;
    return RetryQuota::backoff(attempt - 1, random.fraction());
  });
}

void print(const char* name, const std::vector<Mean>& phases) {
  std::printf("| %-28s |", name);
  for (const Mean& phase : phases) {
    std::printf(" %5.1f %5.1f %5.1f %4.2f; %5.1f", phase.good[0], phase.good[1], phase.good[2],
                phase.good[3], phase.offered);
    std::printf("; %.3f |", phase.jain);
  }
  std::printf("\n");
}

// Of what is known of others no more than the means.
Mean figures(std::vector<double> good, double offered) {
  Mean mean{{std::move(good), offered, 0}};
  mean.jain = jain_of_heavy(mean);
  return mean;
}

void print_heading() {
  std::printf(
      "good answers/s of 150 150 150 10; offered/s; Jain of the three heavy\n"
      "| %-28s | %-37s | %-37s | %-37s |\n",
      "", "50-500 s: 200/s", "550-1000 s: 30/s", "1050-1800 s: 200/s");
  print("origin, sfq",
        {figures({60.9, 75.1, 58.1, 6.3}, 254.8), figures({8.3, 8.4, 7.7, 5.7}, 98.2),
         figures({59.0, 74.5, 60.0, 7.0}, 250.3)});
  print("origin, bloom",
        {figures({34.3, 95.7, 62.6, 7.9}, 206.0), figures({5.9, 10.8, 12.2, 1.25}, 36.7),
         figures({64.2, 75.2, 55.7, 5.4}, 208.0)});
  print("port, burst of 0.5 s, sfq",
        {figures({63.7, 65.6, 62.3, 8.3}, 210.3), figures({7.7, 7.8, 7.7, 6.7}, 38.7),
         figures({64.2, 65.6, 61.8, 8.3}, 210.1)});
}

std::vector<Mean> printed(const char* name, Run run) {
  auto mean = mean_of_seeds(run);
  print(name, mean);
  return mean;
}

TEST(StepScenario, GoodputFairnessAndOfferedLoadHoldThroughAnUpstreamThatSlowsDown) {  // F-4
  print_heading();
  const auto sfq = printed("Weir, sfq", with_weir<1>);
  printed("Weir, bloom", with_weir<3>);
  const double capacities[] = {200, 30, 200};
  const double offered[] = {1.15, 1.45, 1.15};
  const double small[] = {7.5, 6, 7.5};
  for (std::size_t i = 0; i < sfq.size(); ++i) {
    EXPECT_GE(sfq[i].sum_good(), 0.99 * capacities[i]) << "phase " << i;
    EXPECT_LE(sfq[i].offered, offered[i] * capacities[i]) << "phase " << i;
    EXPECT_GE(sfq[i].good[3], small[i]) << "phase " << i;
    EXPECT_GE(sfq[i].jain, 0.98) << "phase " << i;
  }
  const std::vector<Mean> others[] = {printed("accepts, K of 2", with_accept_ratio),
                                      printed("cubic rate", with_cubic_rate),
                                      printed("retry quota", with_retry_quota)};
  for (const auto& other : others) {
    for (std::size_t i = 0; i < sfq.size(); ++i) {
      EXPECT_GT(sfq[i].good[3], other[i].good[3]) << "phase " << i;
    }
  }
}

}  // namespace
}  // namespace weir::test
