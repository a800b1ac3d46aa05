// Which server is next.

#include <gtest/gtest.h>

#include "proxy/http/upstream.h"

namespace weir::http {
namespace {

using namespace std::chrono_literals;

const SteadyTime kNow = SteadyTime{} + 1h;

int next(Rotation& rotation, SteadyTime now = kNow) {
  const int server = rotation.pick(now, {});
  rotation.began(static_cast<std::size_t>(server));
  return server;
}

TEST(Rotation, IdleServersTakeTurns) {
  Rotation rotation(3);
  std::vector<int> order;
  for (int i = 0; i < 6; ++i) {
    order.push_back(next(rotation));
    rotation.ended(static_cast<std::size_t>(order.back()));
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 0, 1, 2, 0}));
}

TEST(Rotation, TheLeastUsedComesFirst) {
  Rotation rotation(2);
  EXPECT_EQ(next(rotation), 1);
  EXPECT_EQ(next(rotation), 0);
  rotation.ended(1);
  EXPECT_EQ(next(rotation), 1);
  rotation.ended(1);
  EXPECT_EQ(next(rotation), 1) << "0 is still busy";
}

TEST(Rotation, OneThatRefusedIsPassedOverForAGrowingWhile) {
  Rotation rotation(2);
  SteadyTime now = kNow;
  std::chrono::milliseconds last{0};
  for (int refusal = 0; refusal < 12; ++refusal) {
    rotation.refused(0, now, now);
    std::chrono::milliseconds pause{0};
    while (true) {
      // Both are idle, and the other one was used last: its turn, unless it is passed over.
      rotation.began(1);
      rotation.ended(1);
      if (rotation.pick(now + pause, {}) == 0) break;
      pause += 100ms;
      ASSERT_LE(pause, 31s);
    }
    EXPECT_GE(pause, last);
    last = pause;
    now += pause;
  }
  EXPECT_EQ(last, 30s);
}

TEST(Rotation, OneOutageIsOneStepHoweverManyItRefuses) {
  Rotation rotation(2);
  for (int i = 0; i < 14; ++i) rotation.refused(0, kNow, kNow);
  // A connect that took longer to fail than the pause lasts had begun before it.
  rotation.refused(0, kNow, kNow + 900ms);
  rotation.began(1);
  rotation.ended(1);
  EXPECT_EQ(rotation.pick(kNow + 499ms, {}), 1);
  EXPECT_EQ(rotation.pick(kNow + 500ms, {}), 0);
}

TEST(Rotation, OneThatAcceptsAgainIsAsGoodAsBefore) {
  Rotation rotation(2);
  for (int i = 0; i < 5; ++i) rotation.refused(0, kNow + 1h * i, kNow + 1h * i);
  rotation.accepted(0);
  rotation.began(1);
  rotation.ended(1);
  EXPECT_EQ(rotation.pick(kNow + 4h, {}), 0);
}

TEST(Rotation, WhenAllRefusedTheOneWhosePauseEndsFirstIsTried) {
  Rotation rotation(2);
  rotation.refused(0, kNow, kNow);
  rotation.refused(1, kNow - 1h, kNow - 1h);
  rotation.refused(1, kNow, kNow);
  EXPECT_EQ(rotation.pick(kNow, {}), 0);
}

TEST(Rotation, OneThatWasTriedForThisRequestIsNotTriedAgain) {
  Rotation rotation(2);
  EXPECT_EQ(rotation.pick(kNow, {false, true}), 0);
  EXPECT_EQ(rotation.pick(kNow, {true, false}), 1);
  EXPECT_EQ(rotation.pick(kNow, {true, true}), -1);
}

}  // namespace
}  // namespace weir::http
