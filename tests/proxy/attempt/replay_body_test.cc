#include "proxy/attempt/replay_body.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace weir {
namespace {

TEST(ReplayBody, KeepsWhatWasSentInOrder) {
  ReplayRoom room;
  ReplayBody body(room, 5);
  body.append("one");
  body.append("two");
  EXPECT_EQ(body.bytes(), "onetwo");
  EXPECT_FALSE(body.overflowed());
  EXPECT_EQ(room.taken(), 11U);
}

TEST(ReplayBody, OverflowsBeyond256KiBAndNotAt) {  // G-12
  ReplayRoom room;
  ReplayBody body(room, 0);
  body.append(std::string(ReplayBody::kMost, 'x'));
  EXPECT_FALSE(body.overflowed());
  body.append("x");
  EXPECT_TRUE(body.overflowed());
  EXPECT_EQ(body.bytes(), "");
  EXPECT_EQ(room.taken(), 0U);
  body.append("x");
  EXPECT_EQ(room.taken(), 0U);
}

TEST(ReplayBody, AllOfAnUpstreamsShareSixteenMiB) {
  ReplayRoom room;
  std::vector<std::unique_ptr<ReplayBody>> bodies;
  for (int i = 0; i < 64; ++i) {
    bodies.push_back(std::make_unique<ReplayBody>(room, ReplayBody::kMost));
    EXPECT_FALSE(bodies.back()->overflowed());
  }
  EXPECT_TRUE(ReplayBody(room, 1).overflowed());
  bodies.pop_back();
  EXPECT_FALSE(ReplayBody(room, 1).overflowed());
  bodies.clear();
  EXPECT_EQ(room.taken(), 0U);
}

}  // namespace
}  // namespace weir
