#include "proxy/attempt/replay_body.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace weir {
namespace {

std::string all_behind(const ReplayBody& body, std::size_t place) {
  std::string bytes;
  while (place + bytes.size() < body.size()) bytes += body.behind(place + bytes.size());
  return bytes;
}

TEST(ReplayBody, KeepsWhatWasSentInOrder) {
  ReplayRoom room;
  ReplayBody body(room, 5);
  EXPECT_EQ(body.behind(0), "");
  EXPECT_TRUE(body.append("one"));
  EXPECT_TRUE(body.append("two"));
  EXPECT_EQ(body.behind(0), "onetwo");
  EXPECT_EQ(body.behind(2), "etwo");
  EXPECT_EQ(body.behind(6), "");
  EXPECT_FALSE(body.overflowed());
  EXPECT_EQ(room.taken(), 11U);
}

TEST(ReplayBody, WhatIsKeptStaysWhereItIsWhileMoreComes) {
  ReplayRoom room;
  ReplayBody body(room, 0);
  std::string expected = "begin";
  body.append(expected);
  const std::string_view begin = body.behind(0);
  for (int i = 0; i < 40; ++i) {
    const std::string piece(5000, static_cast<char>('a' + i % 26));
    EXPECT_TRUE(body.append(piece));
    expected += piece;
  }
  EXPECT_EQ(begin.data(), body.behind(0).data());
  EXPECT_TRUE(all_behind(body, 0) == expected);
  EXPECT_TRUE(all_behind(body, 100'001) == expected.substr(100'001));
}

TEST(ReplayBody, OverflowsBeyond256KiBAndNotAt) {  // G-12
  ReplayRoom room;
  ReplayBody body(room, 0);
  EXPECT_TRUE(body.append(std::string(ReplayBody::kMost, 'x')));
  EXPECT_FALSE(body.overflowed());
  EXPECT_FALSE(body.append("x"));
  EXPECT_TRUE(body.overflowed());
  EXPECT_EQ(body.size(), 0U);
  EXPECT_EQ(room.taken(), 0U);
  EXPECT_FALSE(body.append("x"));
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
