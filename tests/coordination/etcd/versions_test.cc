#include "coordination/etcd/versions.h"

#include <gtest/gtest.h>

namespace weir::etcd {
namespace {

using Use = VersionJudgement::Use;

constexpr const char* kRevokes = "may revoke live leases";
constexpr const char* kKeepAlive = "may keep alive leases that are gone";
constexpr const char* kStale = "may read stale after a pause";

bool remarks(const char* version, const char* defect) {
  return judge_version(version).remark.find(defect) != std::string::npos;
}

TEST(EtcdVersions, BeforeRangeComparesNoneIsUsed) {
  for (const char* version : {"2.3.8", "3.0.17", "3.2.32"}) {
    EXPECT_EQ(judge_version(version).use, Use::no) << version;
  }
  EXPECT_NE(judge_version("3.3.0").use, Use::no);
}

TEST(EtcdVersions, ThoseThatMayLoseDataAreNotUsed) {
  for (const char* version : {"3.5.0", "3.5.1", "3.5.2"}) {
    EXPECT_EQ(judge_version(version).use, Use::no) << version;
  }
  EXPECT_EQ(judge_version("3.5.3").use, Use::with_a_warning);
  EXPECT_EQ(judge_version("3.4.34").use, Use::with_a_warning);
}

TEST(EtcdVersions, WhatCannotBeReadIsNotUsed) {
  for (const char* version : {"", "3", "3.5", "three", "3.x.1", "-3.5.9", "3..1"}) {
    EXPECT_EQ(judge_version(version).use, Use::no) << version;
  }
}

TEST(EtcdVersions, WhatABuildAddsDoesNotMatter) {
  EXPECT_EQ(judge_version("3.6.9-debian").use, Use::yes);
  EXPECT_EQ(judge_version("3.7.0-rc.1").use, Use::yes);
}

TEST(EtcdVersions, TheFirstOnesWithoutKnownDefectsAreUsedSilently) {
  for (const char* version : {"3.4.42", "3.5.28", "3.6.9", "3.7.0", "4.0.0", "3.10.0"}) {
    EXPECT_EQ(judge_version(version).use, Use::yes) << version;
    EXPECT_EQ(judge_version(version).remark, "") << version;
  }
}

struct Edge {
  const char* defect;
  const char* last_with;
  const char* first_without;
};

TEST(EtcdVersions, EachDefectIsNamedUpToTheVersionThatMendedIt) {
  for (const Edge& edge : std::vector<Edge>{{kRevokes, "3.4.30", "3.4.31"},
                                            {kRevokes, "3.5.12", "3.5.13"},
                                            {kRevokes, "3.3.27", "3.6.0"},
                                            {kKeepAlive, "3.4.37", "3.4.38"},
                                            {kKeepAlive, "3.5.22", "3.5.23"},
                                            {kKeepAlive, "3.6.4", "3.6.5"},
                                            {kStale, "3.4.41", "3.4.42"},
                                            {kStale, "3.4.20", "3.4.19"},
                                            {kStale, "3.5.27", "3.5.28"},
                                            {kStale, "3.6.8", "3.6.9"}}) {
    SCOPED_TRACE(edge.defect);
    EXPECT_TRUE(remarks(edge.last_with, edge.defect)) << edge.last_with;
    EXPECT_EQ(judge_version(edge.last_with).use, Use::with_a_warning);
    EXPECT_FALSE(remarks(edge.first_without, edge.defect)) << edge.first_without;
  }
}

TEST(EtcdVersions, ThatOfDebian12HasThemAll) {
  for (const char* defect : {kRevokes, kKeepAlive, kStale}) EXPECT_TRUE(remarks("3.4.23", defect));
}

}  // namespace
}  // namespace weir::etcd
