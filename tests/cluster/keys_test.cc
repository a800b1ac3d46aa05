// What a person sees with `etcdctl get --prefix`, and does with `etcdctl del`.

#include <gtest/gtest.h>

#include <set>

#include "tests/cluster/cluster.h"
#include "tests/cluster/judges.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

TEST(ClusterKeys, ClaimsOfAWindowAreTheRequestsForwardedInItKeyByKey) {
  Cluster cluster({.default_rule = "{limit: 100, window: 2s}"});
  wait_for_window(2s);
  const long first = window_of(std::chrono::steady_clock::now(), 2s);
  Load load(cluster.doors, {{.path = "/foo", .clients = 16}});
  let_run(8s - on_its_way);
  load.stop();

  std::map<long, int> claimed;
  std::map<std::string, int> claimed_by;
  std::set<std::string> keys;
  for (const SeenClaim& claim : cluster.claims()) {
    EXPECT_EQ(claim.rule, "default");
    EXPECT_EQ(claim.resource, "/foo");
    EXPECT_EQ(claim.units, 1) << claim.key;
    // Taken within the window, to the second.
    EXPECT_EQ(window_that_begins(claim.at.substr(0, 19) + "Z", 2s),
              window_that_begins(claim.window, 2s))
        << claim.key << " at " << claim.at;
    ++claimed[window_that_begins(claim.window, 2s)];
    ++claimed_by[claim.replica];
    keys.insert(claim.key);
  }
  const auto arrivals = cluster.upstream.arrivals("/foo");
  const WindowCounts forwarded = by_window(arrivals, 100, 2s);
  EXPECT_EQ(claimed.size(), 4u);
  for (long window = first; window < first + 4; ++window) {
    EXPECT_EQ(claimed[window], 100);
    EXPECT_EQ(forwarded.at(window), claimed[window]) << "in window " << window - first;
  }
  EXPECT_EQ(by_replica(arrivals), claimed_by);
  EXPECT_EQ(keys.size(), arrivals.size());
}

TEST(ClusterKeys, ClaimsDeletedByHandComeBackToTheLineWithinTwoSeconds) {
  Cluster cluster({.default_rule = "{limit: 100, window: 24h}"});
  Load load(cluster.doors, {{.path = "/foo", .clients = 40}});
  eventually("the window is used up", [&] { return cluster.upstream.count() >= 100; });
  eventually("etcd has all claims", [&] { return cluster.claims().size() == 100; });
  std::size_t forwarded = 100;
  for (const std::string replica : {"r1", "r2", "r3"}) {
    std::vector<std::string> some;
    for (const SeenClaim& claim : cluster.claims()) {
      if (claim.replica == replica && some.size() < 7) some.push_back(claim.key);
    }
    ASSERT_EQ(some.size(), 7u) << "of a third of the limit, more or less, of " << replica;
    for (const std::string& key : some) cluster.etcd.etcdctl({"del", key});
    forwarded += some.size();
    eventually(
        "as many as were deleted are forwarded",
        [&] { return cluster.upstream.count() >= forwarded; }, sanitized ? 6s : 2s);
    EXPECT_EQ(cluster.upstream.count(), forwarded);
  }
  const std::string all = cluster.claims().front().key;
  cluster.etcd.etcdctl({"del", "--prefix", all.substr(0, all.find('@') + 1)});
  forwarded += 100;
  eventually(
      "a whole window's claims come back", [&] { return cluster.upstream.count() >= forwarded; },
      sanitized ? 6s : 2s);
  eventually("etcd has all claims", [&] { return cluster.claims().size() == 100; });
  EXPECT_EQ(cluster.upstream.count(), forwarded);
}

TEST(ClusterKeys, APathIsAResourceOfItsOwnWhateverOthersBeginWithIt) {
  Cluster cluster({.default_rule = "{limit: 3, window: 24h, wait: 0s}", .replicas = 2});
  const std::vector<std::string> paths{"/foo", "/foobar", "/foo/bar", "/foo@bar", "/foo/", "/fo"};
  for (const std::string& path : paths) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(get(cluster[static_cast<std::size_t>(i % 2)].port(), path).status, 200) << path;
    }
  }
  for (const std::string& path : paths) {
    expect_problem(get(cluster[0].port(), path), 429, "limit");
    expect_problem(get(cluster[1].port(), path), 429, "limit");
    EXPECT_EQ(cluster.upstream.count(path), 3u) << path;
  }
  std::map<std::string, int> claimed;
  for (const SeenClaim& claim : cluster.claims()) claimed[claim.resource] += claim.units;
  EXPECT_EQ(claimed.size(), paths.size());
  for (const std::string& path : paths) EXPECT_EQ(claimed[path], 3) << path;
}

TEST(ClusterKeys, OddBytesInAPathSurviveTheWayIntoAKeyAndBack) {
  Cluster cluster({.default_rule = "{limit: 1, window: 24h, wait: 0s}", .replicas = 2});
  // As sent, and the canonical path, which is counted and forwarded.
  const std::vector<std::pair<std::string, std::string>> paths{
      {"/%7Euser", "/~user"},
      {"/a//b/../c", "/a/c"},
      {"/a%20b", "/a%20b"},
      {"/%e2%82%ac", "/%E2%82%AC"},
      {"/%25", "/%25"},
      {"/%2525", "/%2525"},
      {"/*", "/*"},
      {"/%2A", "/%2A"},
      {"/a@b@c", "/a@b@c"},
      {"/a%40b", "/a%40b"},
      {"/:8:", "/:8:"},
      {"/-1-2", "/-1-2"},
      {"/@sliding/1", "/@sliding/1"},
      {"/a=b&c,d+e!$'(x)", "/a=b&c,d+e!$'(x)"},
      {"/\"<>[]^`{|}", "/\"<>[]^`{|}"},
      {"/%0A%0D%09", "/%0A%0D%09"},
      {"/%C3%28", "/%C3%28"},
      {"/" + std::string(3000, '%'), ""},  // malformed
      {"/" + std::string(150, '@'), "/" + std::string(150, '@')},
  };
  std::set<std::string> counted;
  for (const auto& [sent, canonical] : paths) {
    const Answer first = get(cluster[0].port(), sent);
    if (canonical.empty()) {
      EXPECT_EQ(first.status, 400) << sent;
      continue;
    }
    EXPECT_EQ(first.status, 200) << sent;
    // The other replica finds it in etcd.
    expect_problem(get(cluster[1].port(), sent), 429, "limit");
    EXPECT_EQ(cluster.upstream.count(canonical), 1u) << canonical;
    counted.insert(canonical);
  }
  std::set<std::string> claimed;
  for (const SeenClaim& claim : cluster.claims()) {
    EXPECT_EQ(claim.replica, "r1");
    claimed.insert(claim.resource);
  }
  EXPECT_EQ(claimed, counted);
}

}  // namespace
}  // namespace weir::test
