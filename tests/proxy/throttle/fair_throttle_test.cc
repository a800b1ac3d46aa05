#include "proxy/throttle/fair_throttle.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <set>

#include "tests/proxy/throttle/scenario.h"

namespace weir::test {
namespace {

constexpr auto kServed = Load::borne;
constexpr auto kOverloaded = Load::too_much;
constexpr auto kIgnored = Load::unknown;

FairThrottleOptions options_of(double initial, double floor, int buckets, int probes = 1) {
  FairThrottleOptions options;
  options.rate.initial = initial;
  options.rate.floor = floor;
  options.buckets = buckets;
  options.probes = probes;
  return options;
}

Totals one_client(const FairThrottleOptions& options, double client, double server, double until,
                  std::uint64_t seed) {
  SeededRandom random(seed << 32);
  FairThrottle throttle(options, random, at(0));
  return run_scenario(
             throttle, {{"tenant", client}}, [&](double) { return server; }, {{0, until}}, random)
      .front();
}

// Admitted in [from, until) by asking so often, each answered with success.
int admitted(FairThrottle& throttle, std::string_view tenant, double from, double until,
             double rate, Load load = kIgnored) {
  int count = 0;
  for (double now = from; now < until; now += 1 / rate) {
    auto ticket = throttle.accept(tenant, at(now));
    if (!ticket) continue;
    ticket.settle(load, at(now));
    ++count;
  }
  return count;
}

// Two tenants in different buckets, or in the same.
enum class Buckets { apart, shared };
std::string other_tenant(const FairThrottle& throttle, std::string_view tenant, Buckets wanted) {
  for (int i = 0;; ++i) {
    std::string name = "other" + std::to_string(i);
    const bool same = *throttle.places_of(tenant).begin() == *throttle.places_of(name).begin();
    if (same == (wanted == Buckets::shared)) return name;
  }
}

TEST(FairThrottle, AServerFarTooSlowIsKeptBusyAndOfferedLittleMore) {  // F-1
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Totals sfq = one_client(options_of(100, 5, 10), 1000, 10, 100, seed);
    std::printf("F-1 sfq: good %.0f, offered %.0f (port 1279-1294)\n", sfq.sum_good(), sfq.offered);
    EXPECT_GT(sfq.sum_good(), 990);
    EXPECT_LT(sfq.offered, 1400);
    const Totals bloom = one_client(options_of(100, 5, 10, 3), 1000, 10, 100, seed);
    EXPECT_GT(bloom.sum_good(), 900);
    EXPECT_LT(bloom.offered, 2000);
  }
}

TEST(FairThrottle, AFloorBelowOneStillServes) {  // F-2
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Totals totals = one_client(options_of(100, 0.1, 10), 1000, 10, 100, seed);
    std::printf("F-2: good %.0f, offered %.0f (port 413-549, 1591-2138)\n", totals.sum_good(),
                totals.offered);
    EXPECT_GT(totals.sum_good(), 300);
    EXPECT_LT(totals.offered, 2400);
  }
}

TEST(FairThrottle, AServerWithRoomIsFoundOutQuickly) {  // F-3
  FairThrottleOptions options = options_of(100, 0.1, 10);
  options.rate.ceiling = 1000;
  SeededRandom random(1);
  FairThrottle throttle(options, random, at(0));
  const auto fast = [](double) { return 10'000.0; };
  const Totals first = run_scenario(throttle, {{"tenant", 500}}, fast, {{0, 10}}, random).front();
  std::printf("F-3: offered %.0f, throttled %.0f (port 4596, 403)\n", first.offered,
              first.throttled);
  EXPECT_EQ(first.offered, first.sum_good());
  EXPECT_GT(first.offered, 4550);
  EXPECT_LT(first.throttled, 450);
  int throttled = 0;
  for (int i = 0; i < 10'000; ++i) {
    const SteadyTime now = at(10 + i * 0.001);
    auto ticket = throttle.accept("tenant", now);
    ticket ? ticket.settle(kServed, now) : void(++throttled);
  }
  EXPECT_LT(throttled, 100);
}

TEST(FairThrottle, ALightTenantLosesNextToNothingBesideAHeavyOneInAnotherBucket) {  // F-5
  double good = 0, asked = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SeededRandom random(seed << 32);
    FairThrottleOptions options = options_of(50, 5, 17);
    options.rehash = std::chrono::hours{2};
    FairThrottle throttle(options, random, at(0));
    const std::string heavy = other_tenant(throttle, "light", Buckets::apart);
    const std::vector<Client> clients{{"light", 10}, {heavy, 1000}};
    const auto totals =
        run_scenario(throttle, clients, [](double) { return 500; }, {{10, 110}}, random).front();
    good += totals.good[0];
    asked += 1000;
  }
  EXPECT_GT(good, 0.95 * asked);
  std::printf("F-5: the light one got %.1f %%\n", 100 * good / asked);
}

TEST(FairThrottle, TenantsOfOneBucketPartAtTheNextRehashSixteenTimesOfSeventeen) {  // F-6
  int parted = 0;
  constexpr int kTries = 2000;
  for (int seed = 0; seed < kTries; ++seed) {
    SeededRandom random(static_cast<std::uint64_t>(seed) << 32);
    FairThrottle throttle(options_of(50, 5, 17), random, at(0));
    const std::string other = other_tenant(throttle, "tenant", Buckets::shared);
    (void)throttle.accept("tenant", at(6.001));  // the interval and its jitter are over
    parted += *throttle.places_of("tenant").begin() != *throttle.places_of(other).begin();
  }
  EXPECT_NEAR(parted / static_cast<double>(kTries), 16.0 / 17, 0.02);
}

TEST(FairThrottle, WithoutARehashTenantsStayWhereTheyAre) {
  SeededRandom random(1);
  FairThrottle throttle(options_of(50, 5, 1000), random, at(0));
  const auto before = *throttle.places_of("tenant").begin();
  (void)throttle.accept("tenant", at(3.999));
  EXPECT_EQ(*throttle.places_of("tenant").begin(), before) << "never this early";
  (void)throttle.accept("tenant", at(6.001));
  EXPECT_NE(*throttle.places_of("tenant").begin(), before);
}

TEST(FairThrottle, ARehashGivesNobodyMoreThanHeHad) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SeededRandom random(seed << 32);
    FairThrottle throttle(options_of(100, 5, 17), random, at(0));
    for (double now = 0; now < 3.9; now += 0.002) {
      for (const char* tenant : {"a", "b", "c"}) {
        auto ticket = throttle.accept(tenant, at(now));
        if (ticket) ticket.settle(kIgnored, at(now));
      }
    }
    std::map<std::string, double> before;
    for (const char* tenant : {"a", "b", "c", "idle"}) {
      before[tenant] = throttle.tokens_of(tenant, at(6.1));
    }
    // Whoever comes first brings the rehash about.
    (void)throttle.accept("whoever", at(6.1));
    for (const auto& [tenant, tokens] : before) {
      EXPECT_LE(throttle.tokens_of(tenant, at(6.1)), tokens) << tenant << " seed " << seed;
    }
  }
}

TEST(FairThrottle, AHeavyTenantGetsNoBurstOutOfARehash) {
  SeededRandom random(7);
  FairThrottle throttle(options_of(100, 5, 17), random, at(0));
  admitted(throttle, "heavy", 0, 3.9, 1000);
  // Rate 100 for 6 s with at least four rehashes: 25 would come with each from full buckets.
  const int got = admitted(throttle, "heavy", 3.9, 33.9, 1000);
  EXPECT_NEAR(got, 3000, 10);
}

TEST(FairThrottle, DroppedTicketsChangeNothingAndAreCounted) {
  SeededRandom random(1);
  FairThrottle throttle(options_of(100, 5, 17), random, at(0));
  {
    const auto ticket = throttle.accept("tenant", at(0));
  }
  auto moved_from = throttle.accept("tenant", at(0));
  const auto moved_to = std::move(moved_from);
  EXPECT_EQ(throttle.facts(at(0)).dropped, 1u);
  EXPECT_EQ(throttle.rate(), 100);
}

TEST(FairThrottle, ReportingOnADenialOrTwiceIsAnError) {  // F-9
  SeededRandom random(1);
  FairThrottle throttle(options_of(1, 1, 1), random, at(0));
  auto ticket = throttle.accept("tenant", at(0));
  ASSERT_TRUE(ticket);
  ticket.settle(kServed, at(0));
  EXPECT_THROW(ticket.settle(kServed, at(0)), std::logic_error);
  (void)throttle.accept("tenant", at(0));
  auto denial = throttle.accept("tenant", at(0));
  ASSERT_FALSE(denial);
  EXPECT_THROW(denial.settle(kIgnored, at(0)), std::logic_error);
}

TEST(FairThrottle, ARateOfOneAdmitsOneASecond) {  // F-10
  SeededRandom random(1);
  FairThrottle throttle(options_of(1, 1, 1), random, at(0));
  const int got = admitted(throttle, "tenant", 0, 100, 50);
  EXPECT_GE(got, 99);
  EXPECT_LE(got, 102);  // and the two that it began with
}

TEST(FairThrottle, AnHourOfIdlenessSavesUpABurstAndNoMore) {  // F-11
  constexpr int kActive = 4;
  SeededRandom random(3);
  FairThrottle throttle(options_of(100, 5, 17), random, at(0));
  (void)throttle.accept("tenant", at(0));
  int got = 0;
  for (double now = 3600; now < 3601; now += 0.001) {
    for (int tenant = 0; tenant < kActive; ++tenant) {
      auto ticket = throttle.accept("tenant" + std::to_string(tenant), at(now));
      if (!ticket) continue;
      ticket.settle(kIgnored, at(now));
      ++got;
    }
  }
  EXPECT_LE(got, kActive * 1.5 * 100);
  EXPECT_GE(got, 1.4 * 100);
}

TEST(FairThrottle, OnlyOverloadLowersTheRateAndOnlySuccessRaisesIt) {
  SeededRandom random(1);
  FairThrottle throttle(options_of(100, 5, 1), random, at(0));
  admitted(throttle, "tenant", 0, 5, 1000);
  EXPECT_EQ(throttle.rate(), 100) << "without reports nothing changes";
  auto ticket = throttle.accept("tenant", at(5.1));
  ticket.settle(kOverloaded, at(5.1));
  EXPECT_DOUBLE_EQ(throttle.rate(), 70);
  throttle.accept("tenant", at(5.2)).settle(kServed, at(5.2));
  EXPECT_DOUBLE_EQ(throttle.rate(), 71) << "it denied a moment ago";
}

TEST(FairThrottle, SuccessRaisesTheRateOnlyWhileTheBucketLimits) {
  SeededRandom random(1);
  FairThrottle throttle(options_of(100, 5, 1), random, at(0));
  EXPECT_GE(admitted(throttle, "tenant", 0, 10, 50, kServed), 500);
  EXPECT_EQ(throttle.rate(), 100) << "far more was allowed than asked for";
  admitted(throttle, "tenant", 10, 11, 1000);
  auto late = throttle.accept("tenant", at(11.1));
  late.settle(kServed, at(12.2));
  EXPECT_EQ(throttle.rate(), 100) << "that is more than a second ago";
}

TEST(FairThrottle, BloomTakesFromEachProbeAndLearnsOncePerRequest) {
  SeededRandom random(1);
  FairThrottle throttle(options_of(10, 5, 17, 3), random, at(0));
  EXPECT_EQ(admitted(throttle, "tenant", 0, 0.001, 1000), 1);
  auto ticket = throttle.accept("tenant", at(0.01));
  ticket.settle(kOverloaded, at(0.01));
  EXPECT_DOUBLE_EQ(throttle.rate(), 7);
  EXPECT_EQ(throttle.facts(at(0.02)).in_use, 3);
}

TEST(FairThrottle, BloomDeniesWhereOneProbeIsEmptyAndThenTakesFromNone) {
  SeededRandom random(1);
  FairThrottle throttle(options_of(10, 5, 3, 2), random, at(0));
  // Three buckets: any two tenants share one at least; find two that share exactly one.
  const Places mine = throttle.places_of("tenant");
  std::string other;
  for (int i = 0; other.empty(); ++i) {
    const std::string name = "other" + std::to_string(i);
    const Places its = throttle.places_of(name);
    const bool same =
        std::set<int>(its.begin(), its.end()) == std::set<int>(mine.begin(), mine.end());
    if (!same) other = name;
  }
  while (throttle.accept(other, at(0))) {
  }
  EXPECT_FALSE(throttle.accept("tenant", at(0)));
  const auto third = [&] {  // shares with `other` nothing but what "tenant" does not use
    for (int i = 0;; ++i) {
      const std::string name = "third" + std::to_string(i);
      const Places its = throttle.places_of(name);
      std::set<int> both(its.begin(), its.end());
      both.insert(mine.begin(), mine.end());
      if (both.size() == 2) return name;
    }
  }();
  EXPECT_FALSE(throttle.accept(third, at(0)));
  // The unshared bucket of "tenant" is still full: 5 tokens, and only those denied have asked.
  EXPECT_NEAR(throttle.accept("tenant", at(0)).retry_in().count(), 1e8, 1e6);
}

TEST(FairThrottle, ADenialSaysWhenThereWillBeAToken) {
  SeededRandom random(1);
  FairThrottle throttle(options_of(4, 1, 1), random, at(0));
  while (throttle.accept("tenant", at(0))) {
  }
  const auto wait = throttle.accept("tenant", at(0)).retry_in();
  EXPECT_NEAR(std::chrono::duration<double>(wait).count(), 0.25, 1e-6);
  EXPECT_FALSE(throttle.accept("tenant", at(0.249)));
  EXPECT_TRUE(throttle.accept("tenant", at(0.2501)));
}

TEST(FairThrottle, TellsHowManyOfItsBucketsWereAskedForWithinTheLastSecond) {
  SeededRandom random(11);
  FairThrottle throttle(options_of(100, 5, 17), random, at(0));
  EXPECT_EQ(throttle.facts(at(0)).in_use, 0);
  EXPECT_EQ(throttle.facts(at(0)).buckets, 17);
  (void)throttle.accept("a", at(0));
  EXPECT_EQ(throttle.facts(at(0.5)).in_use, 1);
  EXPECT_EQ(throttle.facts(at(2)).in_use, 0);
}

}  // namespace
}  // namespace weir::test
