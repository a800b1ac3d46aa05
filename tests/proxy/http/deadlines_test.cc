#include "proxy/http/deadlines.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace weir::http {
namespace {

using namespace std::chrono_literals;

// Far from zero, as a real clock is.
const SteadyTime kStart = SteadyTime{} + 123456789ms;

TEST(Deadlines, NoneFiresEarlyAndNoneMoreThanTwoTicksLate) {
  std::mt19937 random(7);
  Deadlines deadlines(kStart);
  SteadyTime now = kStart;
  std::vector<std::unique_ptr<Deadlines::Entry>> entries;
  std::vector<SteadyTime> due, fired(500);
  for (std::size_t i = 0; i < fired.size(); ++i) {
    entries.push_back(std::make_unique<Deadlines::Entry>([&fired, &now, i] { fired[i] = now; }));
    const std::chrono::milliseconds timeout{1 + random() % 60'000};
    due.push_back(now + timeout);
    deadlines.arm(*entries.back(), timeout);
  }
  while (now < kStart + 61s) {
    now += Deadlines::kTick;
    deadlines.advance(now);
  }
  for (std::size_t i = 0; i < fired.size(); ++i) {
    EXPECT_GE(fired[i], due[i]);
    EXPECT_LE(fired[i], due[i] + 2 * Deadlines::kTick);
  }
}

TEST(Deadlines, OneThatIsDisarmedOrDestroyedDoesNotFire) {
  Deadlines deadlines(kStart);
  int fired = 0;
  Deadlines::Entry kept([&] { ++fired; });
  Deadlines::Entry disarmed([&] { fired += 10; });
  deadlines.arm(kept, 100ms);
  deadlines.arm(disarmed, 100ms);
  {
    Deadlines::Entry destroyed([&] { fired += 100; });
    deadlines.arm(destroyed, 100ms);
  }
  disarmed.disarm();
  deadlines.advance(kStart + 1s);
  EXPECT_EQ(fired, 1);
  EXPECT_FALSE(kept.armed());
}

TEST(Deadlines, ArmingAgainReplacesTheDeadline) {
  Deadlines deadlines(kStart);
  int fired = 0;
  Deadlines::Entry entry([&] { ++fired; });
  deadlines.arm(entry, 100ms);
  deadlines.arm(entry, 30s);
  deadlines.advance(kStart + 1s);
  EXPECT_EQ(fired, 0);
  deadlines.advance(kStart + 31s);
  EXPECT_EQ(fired, 1);
}

TEST(Deadlines, WhatFiresMayArmAgainAndTakeOthersDown) {
  Deadlines deadlines(kStart);
  int fired = 0;
  auto victim = std::make_unique<Deadlines::Entry>([&] { fired += 100; });
  std::unique_ptr<Deadlines::Entry> entry;
  entry = std::make_unique<Deadlines::Entry>([&] {
    ++fired;
    victim.reset();
    if (fired < 3) deadlines.arm(*entry, 1ms);
  });
  deadlines.arm(*entry, 10ms);
  deadlines.arm(*victim, 10ms);
  for (int tick = 1; tick < 20; ++tick) deadlines.advance(kStart + tick * Deadlines::kTick);
  EXPECT_EQ(fired, 3);
}

TEST(Deadlines, ALongPauseOfTheLoopLosesNone) {
  Deadlines deadlines(kStart);
  int fired = 0;
  std::vector<std::unique_ptr<Deadlines::Entry>> entries;
  for (int i = 0; i < 1000; ++i) {
    entries.push_back(std::make_unique<Deadlines::Entry>([&] { ++fired; }));
    deadlines.arm(*entries.back(), std::chrono::milliseconds{i * 37});
  }
  deadlines.advance(kStart + 1h);
  EXPECT_EQ(fired, 1000);
}

}  // namespace
}  // namespace weir::http
