#include "coordination/etcd/lineage.h"

#include <gtest/gtest.h>

namespace weir::etcd {
namespace {

constexpr std::uint64_t kCluster = 7, kOther = 8;

TEST(Lineage, TheFirstClusterIsTheOne) {
  Lineage lineage;
  EXPECT_FALSE(lineage.replaced_by(kCluster, 100, lineage.known()));
  EXPECT_EQ(lineage.known().revision, 100);
}

TEST(Lineage, AnotherClusterReplacesIt) {
  Lineage lineage;
  lineage.replaced_by(kCluster, 100, lineage.known());
  EXPECT_TRUE(lineage.replaced_by(kOther, 200, lineage.known()));
  EXPECT_EQ(lineage.known().revision, 200);
  EXPECT_FALSE(lineage.replaced_by(kOther, 201, lineage.known())) << "once";
}

TEST(Lineage, ALowerRevisionThanWasKnownWhenAskedReplacesIt) {
  Lineage lineage;
  lineage.replaced_by(kCluster, 100, lineage.known());
  EXPECT_FALSE(lineage.replaced_by(kCluster, 100, lineage.known()));
  EXPECT_TRUE(lineage.replaced_by(kCluster, 99, lineage.known()));
  EXPECT_EQ(lineage.known().revision, 99);
}

TEST(Lineage, AnswersThatOvertakeEachOtherReplaceNothing) {
  Lineage lineage;
  lineage.replaced_by(kCluster, 100, lineage.known());
  const auto at_send = lineage.known();
  EXPECT_FALSE(lineage.replaced_by(kCluster, 102, at_send));
  EXPECT_FALSE(lineage.replaced_by(kCluster, 101, at_send));
  EXPECT_EQ(lineage.known().revision, 102);
}

TEST(Lineage, AnAnswerAskedForBeforeTheReplacementIsNotASecondOne) {
  Lineage lineage;
  lineage.replaced_by(kCluster, 100, lineage.known());
  const auto before = lineage.known();
  EXPECT_TRUE(lineage.replaced_by(kCluster, 5, before));
  EXPECT_FALSE(lineage.replaced_by(kCluster, 6, before));
  EXPECT_FALSE(lineage.replaced_by(kCluster, 101, before)) << "late, from the old one";
  EXPECT_FALSE(lineage.replaced_by(kCluster, 7, lineage.known())) << "which it taught nothing";
}

TEST(Lineage, WhereNoRevisionIsToldOnlyTheClusterIsLookedAt) {
  Lineage lineage;
  lineage.replaced_by(kCluster, 100, lineage.known());
  EXPECT_FALSE(lineage.replaced_by(kCluster, std::nullopt, lineage.known()));
  EXPECT_EQ(lineage.known().revision, 100);
  EXPECT_TRUE(lineage.replaced_by(kOther, std::nullopt, lineage.known()));
  EXPECT_FALSE(lineage.replaced_by(kOther, 3, lineage.known()));
}

}  // namespace
}  // namespace weir::etcd
