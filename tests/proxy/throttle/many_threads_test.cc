// Throttles under eight threads: nothing is given twice, nothing is lost. Meant for the tsan preset
// as well.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "proxy/throttle/sfb.h"
#include "tests/proxy/throttle/scenario.h"

namespace weir::test {
namespace {

constexpr int kThreads = 8;

template <class Work>
void on_all_threads(Work work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
}

FairThrottleOptions options_of(double rate, int buckets, int probes) {
  FairThrottleOptions options;
  options.rate.initial = rate;
  options.buckets = buckets;
  options.probes = probes;
  return options;
}

TEST(ThrottleThreads, EightThreadsGetExactlyTheTokensThatThereAre) {
  for (const int probes : {1, 3}) {
    SeededRandom random(1);
    FairThrottle throttle(options_of(2000, 17, probes), random, at(0));
    std::atomic<int> got{0};
    on_all_threads([&](int) {
      for (int i = 0; i < 1000; ++i) {
        auto ticket = throttle.accept("tenant", at(0));
        if (!ticket) continue;
        ticket.settle(Load::unknown, at(0));
        ++got;
      }
    });
    EXPECT_EQ(got, 1000) << "half a second of 2000";
  }
}

// Half a second's tokens, all of them, whose outcomes eight threads tell at once behind a denial.
// How many they were.
int settle_at_once(FairThrottle& throttle, Load load) {
  std::atomic<int> begun{0}, settled{0};
  on_all_threads([&](int) {
    std::vector<Throttle::Ticket> tickets;
    while (auto ticket = throttle.accept("tenant", at(0))) tickets.push_back(std::move(ticket));
    ++begun;
    while (begun < kThreads) std::this_thread::yield();
    for (Throttle::Ticket& ticket : tickets) ticket.settle(load, at(0.5));
    settled += static_cast<int>(tickets.size());
  });
  return settled;
}

TEST(ThrottleThreads, EverySuccessOfEightThreadsIsLearnedOnce) {
  SeededRandom random(1);
  FairThrottle throttle(options_of(1e6, 1, 1), random, at(0));
  EXPECT_EQ(settle_at_once(throttle, Load::borne), 500'000);
  EXPECT_EQ(throttle.rate(), 1.5e6);
}

TEST(ThrottleThreads, EveryOverloadOfEightThreadsIsLearnedOnce) {
  SeededRandom random(1);
  FairThrottleOptions options = options_of(1e6, 1, 1);
  options.rate.floor = 0;
  options.rate.decrease = 0.9999;
  FairThrottle throttle(options, random, at(0));
  double expected = 1e6;
  for (int left = settle_at_once(throttle, Load::too_much); left > 0; --left) expected *= 0.9999;
  EXPECT_EQ(throttle.rate(), expected);
}

TEST(ThrottleThreads, RehashesAmongEightThreadsGiveNoMoreThanTheRate) {
  SeededRandom random(1);
  FairThrottleOptions options = options_of(100, 17, 1);
  options.rehash = std::chrono::milliseconds{50};
  FairThrottle throttle(options, random, at(0));
  std::atomic<int> got{0};
  constexpr double kSeconds = 20;
  on_all_threads([&](int) {
    for (double now = 0; now < kSeconds; now += 0.002) {
      auto ticket = throttle.accept("heavy", at(now));
      if (!ticket) continue;
      ticket.settle(Load::unknown, at(now));
      ++got;
    }
  });
  EXPECT_LE(got, 100 * (kSeconds + 0.5) + 1);
  EXPECT_LE(throttle.facts(at(kSeconds)).in_use, 17);
}

TEST(ThrottleThreads, WhatEntersSfbFromEightThreadsLeavesItAgain) {
  SeededRandom random(1);
  SfbOptions options;
  options.rehash = std::chrono::milliseconds{100};
  Sfb sfb(options, random, at(0));
  std::atomic<int> granted{0};
  on_all_threads([&](int thread) {
    std::vector<Throttle::Ticket> held;
    for (int i = 0; i < 5000; ++i) {
      const double now = i * 0.001;
      auto ticket = sfb.accept("tenant" + std::to_string((thread + i) % 50), at(now));
      if (ticket) {
        ++granted;
        held.push_back(std::move(ticket));
      }
      if (held.size() > 20) {
        held.front().settle(i % 3 ? Load::borne : Load::too_much, at(now));
        held.erase(held.begin());
      }
    }
  });
  EXPECT_GT(granted, 1000);
  for (const Sfb::Level& level : sfb.under_way()) {
    EXPECT_EQ(level.under_way, 0);
    EXPECT_EQ(level.least, 0);
    EXPECT_EQ(level.most, 0);
  }
}

}  // namespace
}  // namespace weir::test
