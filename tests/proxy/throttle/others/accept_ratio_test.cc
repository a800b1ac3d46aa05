// The model against the origin's figures, and Weir's one bucket in the same situations.

#include "tests/proxy/throttle/others/accept_ratio.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>

#include "tests/proxy/throttle/others/blind_throttle.h"
#include "tests/proxy/throttle/scenario.h"

namespace weir::test {
namespace {

using ServerRate = std::function<double(double)>;

const auto kAlways100 = [](double) { return 100.0; };

std::vector<Totals> with_ratio(const AcceptRatioOptions& options, double client,
                               const ServerRate& server, const std::vector<Phase>& phases) {
  SeededRandom random(1);
  AcceptRatio ratio(options);
  BlindThrottle throttle([&](SteadyTime now) { return ratio.ask(random.fraction(), now); },
                         [&](Load load, SteadyTime now) {
                           if (load == Load::borne) ratio.accepted(now);
                         });
  return run_scenario(throttle, {{"client", client}}, server, phases, random);
}

std::vector<Totals> with_weir(double client, const ServerRate& server,
                              const std::vector<Phase>& phases) {
  SeededRandom random(1);
  FairThrottleOptions options;
  options.buckets = 1;
  options.burst = std::chrono::milliseconds{20};
  FairThrottle throttle(options, random, at(0));
  return run_scenario(throttle, {{"client", client}}, server, phases, random);
}

AcceptRatioOptions ratio_of(double k, double padding = 1, double most = 1) {
  AcceptRatioOptions options;
  options.k = k;
  options.padding = padding;
  options.most = most;
  return options;
}

TEST(AcceptRatio, AnOverloadedServerIsOfferedKTimesWhatItAccepts) {
  for (const double k : {2.0, 1.1}) {
    const auto total = with_ratio(ratio_of(k), 1000, kAlways100, {{300, 900}}).front();
    EXPECT_NEAR(total.offered / 600, k * 100, 0.05 * k * 100);
    EXPECT_NEAR(total.sum_good() / 600, 100, 1);
  }
}

TEST(AcceptRatio, WeirOffersAnOverloadedServerLittleMoreThanItServes) {
  const Totals total = with_weir(1000, kAlways100, {{300, 900}}).front();
  std::printf("A-1 Weir: offered %.1f/s, good %.1f/s\n", total.offered / 600,
              total.sum_good() / 600);
  EXPECT_GE(total.sum_good(), 0.99 * 100 * 600);
  EXPECT_LE(total.offered, 1.1 * 100 * 600);
}

TEST(AcceptRatio, NothingIsRejectedWhileOneOfKIsAccepted) {
  AcceptRatio ratio(ratio_of(2));
  const auto accepted_and_failed = [&](double now) {
    ASSERT_TRUE(ratio.ask(0, at(now)));
    ratio.accepted(at(now));
    ASSERT_TRUE(ratio.ask(0, at(now)));
  };
  for (int i = 0; i < 5000; ++i) accepted_and_failed(i * 0.1);
  EXPECT_EQ(ratio.rejection(at(500)), 0);
  EXPECT_TRUE(ratio.ask(0, at(500)));
  EXPECT_FALSE(ratio.ask(0, at(500))) << "one failure more";
}

TEST(AcceptRatio, WeirRejectsNothingWhereAllIsServed) {
  const Totals total = with_weir(90, kAlways100, {{0, 600}}).front();
  EXPECT_EQ(total.throttled, 0);
  EXPECT_EQ(total.sum_good(), total.offered);
}

// Twenty windows of an outage, then what follows by tens of seconds.
constexpr double kOutage = 2400;
const auto kOutageThen100 = [](double now) { return now < kOutage ? 0.0 : 100.0; };
std::vector<Phase> outage_and_after() {
  std::vector<Phase> phases{{120, kOutage}};
  for (int i = 0; i < 100; ++i) phases.push_back({kOutage + 10 * i, kOutage + 10 * (i + 1)});
  return phases;
}

// Seconds from the outage's end until nearly all of what can be served is.
double recovery(const std::vector<Totals>& totals) {
  for (std::size_t i = 1; i < totals.size(); ++i) {
    if (totals[i].sum_good() >= 0.95 * 100 * 10) return 10.0 * static_cast<double>(i - 1);
  }
  return std::numeric_limits<double>::infinity();
}

TEST(AcceptRatio, InAnOutageAsManyProbesPassInAWindowAsThePaddingIs) {
  const double windows = (kOutage - 120) / 120;
  const auto one = with_ratio(ratio_of(2, 1), 1000, kOutageThen100, outage_and_after());
  EXPECT_NEAR(one[0].offered / windows, 1, 0.7);
  const auto eight = with_ratio(ratio_of(2, 8), 1000, kOutageThen100, outage_and_after());
  EXPECT_NEAR(eight[0].offered / windows, 8, 2);
  std::printf("A-3: recovered after %.0f s, with a padding of 8 %.0f s\n", recovery(one),
              recovery(eight));
  EXPECT_GE(recovery(eight), 300);
}

TEST(AcceptRatio, WithACapProbesGoOnInAnOutageAndItRecoversSooner) {
  const auto capped = with_ratio(ratio_of(2, 1, 0.99), 1000, kOutageThen100, outage_and_after());
  EXPECT_NEAR(capped[0].offered / (kOutage - 120), 10, 1) << "one of a hundred";
  std::printf("A-3: with a cap of 0.99 recovered after %.0f s\n", recovery(capped));
  EXPECT_LE(recovery(capped), 240);
}

TEST(AcceptRatio, WeirProbesAtItsFloorInAnOutageAndRecoversInSeconds) {
  const auto weir = with_weir(1000, kOutageThen100, outage_and_after());
  EXPECT_NEAR(weir[0].offered / (kOutage - 120), 5, 0.1) << "the floor";
  std::printf("A-3 Weir: recovered after %.0f s\n", recovery(weir));
  EXPECT_LE(recovery(weir), 10);
}

// Before the clock's zero as behind it.
TEST(AcceptRatio, CountsWhatItRejectsAndForgetsWhatLeftTheWindow) {
  for (const std::chrono::seconds start : {std::chrono::seconds{-10}, std::chrono::seconds{10}}) {
    AcceptRatioOptions options = ratio_of(1);
    options.window = std::chrono::seconds{1};
    AcceptRatio ratio(options);
    const auto ms = [&](int count) {
      return SteadyTime{} + start + std::chrono::milliseconds{count};
    };
    EXPECT_EQ(ratio.rejection(ms(0)), 0);
    EXPECT_TRUE(ratio.ask(0.4, ms(0)));
    ratio.accepted(ms(0));
    EXPECT_EQ(ratio.rejection(ms(0)), 0);
    EXPECT_TRUE(ratio.ask(0.4, ms(0)));
    EXPECT_DOUBLE_EQ(ratio.rejection(ms(0)), 1.0 / 3);
    EXPECT_TRUE(ratio.ask(0.4, ms(500)));
    EXPECT_DOUBLE_EQ(ratio.rejection(ms(500)), 2.0 / 4);
    EXPECT_FALSE(ratio.ask(0.4, ms(500)));
    EXPECT_DOUBLE_EQ(ratio.rejection(ms(500)), 3.0 / 5);
    EXPECT_DOUBLE_EQ(ratio.rejection(ms(1250)), 2.0 / 3) << "the last two are left";
  }
}

}  // namespace
}  // namespace weir::test
