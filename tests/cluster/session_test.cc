// A replica's presence in etcd: its name, and who else is live.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cluster/cluster.h"
#include "tests/cluster/judges.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

std::vector<std::string> listed(const WeirdProcess& weird) {
  std::vector<std::string> names;
  const auto page = nlohmann::json::parse(weird.admin("/v1/replicas").body);
  for (const auto& replica : page.at("replicas")) names.push_back(replica.at("name"));
  return names;
}

bool taken(const WeirdProcess& weird) {
  return not_ready(weird).find("name_taken") != std::string::npos;
}

using Names = std::vector<std::string>;

TEST(ClusterSession, EveryReplicaHasAKeyUnderALeaseAndLiveOnesAreListed) {
  Cluster cluster;
  const std::string prefix = "/weir/v1/replicas/";
  EXPECT_EQ(cluster.etcd.etcdctl({"get", "--prefix", "--keys-only", prefix}),
            prefix + "r1\n\n" + prefix + "r2\n\n" + prefix + "r3\n\n");
  const auto told =
      nlohmann::json::parse(cluster.etcd.etcdctl({"get", "--print-value-only", prefix + "r2"}));
  for (const char* field : {"address", "version", "since"}) EXPECT_TRUE(told.contains(field));
  const auto leases = nlohmann::json::parse(cluster.etcd.etcdctl({"lease", "list", "-w", "json"}));
  EXPECT_EQ(leases.at("leases").size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(listed(cluster[i]), (Names{"r1", "r2", "r3"}));

  cluster.stop(1);
  eventually(
      "the one that stopped is gone for the others",
      [&] { return listed(cluster[0]) == Names{"r1", "r3"}; }, 5s);
  EXPECT_EQ(cluster.etcd.etcdctl({"get", "--prefix", "--keys-only", prefix}),
            prefix + "r1\n\n" + prefix + "r3\n\n");

  // Somebody deletes a live replica's key: it puts it again.
  cluster.etcd.etcdctl({"del", prefix + "r3"});
  eventually("the key is there again",
             [&] { return !cluster.etcd.etcdctl({"get", "--keys-only", prefix + "r3"}).empty(); });
  EXPECT_EQ(not_ready(cluster[2]), "");
}

TEST(ClusterSession, ANameThatAnotherHoldsIsNotReadyUntilThatIsGone) {
  Cluster cluster({.default_rule = "{limit: 100, window: 24h}", .replicas = 1});
  auto second = cluster.another("r1");
  eventually("the second is not ready", [&] { return taken(*second); });
  EXPECT_EQ(not_ready(cluster[0]), "");
  EXPECT_EQ(listed(*second), Names{"r1"});

  // Whoever asks it nevertheless is counted: the two share the name, never a unit.
  Doors both(2);
  both.set(0, cluster[0].port());
  both.set(1, second->port());
  Load load(both, {{.path = "/foo", .clients = 30, .doors = {0, 1}}});
  eventually("the window is used up", [&] { return cluster.upstream.count() >= 100; });
  let_run(500ms);
  load.stop();
  EXPECT_EQ(cluster.upstream.count(), 100u) << shares(cluster.upstream.arrivals());
  EXPECT_EQ(cluster.claims().size(), 100u);
  EXPECT_TRUE(taken(*second));

  const Instant killed = std::chrono::steady_clock::now();
  cluster.kill(0);
  eventually(
      "the second takes over", [&] { return not_ready(*second).empty(); }, sanitized ? 25s : 15s);
  std::cout << "taken over after "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - killed).count()
            << " s\n";

  const auto third = cluster.another("r1");
  eventually("the third is not ready", [&] { return taken(*third); });
  second.reset();
  const Span took = eventually(
      "after a clean stop it takes over at once", [&] { return not_ready(*third).empty(); },
      sanitized ? 10s : 3s);
  std::cout << "after a clean stop: " << took.count() << " ms\n";
}

}  // namespace
}  // namespace weir::test
