// What may happen to etcd, under load: no limit is exceeded, and all serve again within seconds.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cluster/under_load.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

constexpr Span fault_lasts = 3s;

ClusterSettings three_members() {
  ClusterSettings settings;
  settings.etcd.members = 3;
  return settings;
}

std::string revision(EtcdCluster& etcd) {
  const auto told = nlohmann::json::parse(etcd.etcdctl({"get", "/none", "-w", "json"}));
  return std::to_string(told.at("header").at("revision").get<long>());
}

TEST(ClusterMembers, TheLeaderIsKilledAndComesBack) {
  UnderLoad under(three_members());
  const std::size_t leader = under.cluster.etcd.leader();
  under.cluster.etcd.kill(leader);
  under.expect_serving_again();  // two of three are enough
  under.cluster.etcd.start(leader);
  under.expect_serving_again();
}

TEST(ClusterMembers, TheLeaderStandsStillAndGoesOn) {
  UnderLoad under(three_members());
  const std::size_t leader = under.cluster.etcd.leader();
  under.cluster.etcd.freeze(leader);
  under.expect_serving_again();
  under.cluster.etcd.thaw(leader);
  under.expect_serving_again();
}

TEST(ClusterMembers, TheLeaderIsMovedAgainAndAgain) {
  UnderLoad under(three_members());
  for (int i = 0; i < 4; ++i) {
    const std::size_t leader = under.cluster.etcd.leader();
    const auto status =
        nlohmann::json::parse(under.cluster.etcd.etcdctl({"endpoint", "status", "-w", "json"}));
    for (const auto& member : status) {
      if (member.at("Endpoint") == under.cluster.etcd.endpoint(leader)) continue;
      char id[32];
      std::snprintf(id, sizeof id, "%lx",
                    member.at("Status").at("header").at("member_id").get<unsigned long>());
      // Only the leader itself may be asked.
      const Ran ran = run_program(
          "/usr/bin/etcdctl",
          {.arguments = {"--endpoints=" + under.cluster.etcd.endpoint(leader), "move-leader", id}});
      EXPECT_EQ(ran.code, 0) << ran.error;
      break;
    }
    let_run(700ms);
  }
  under.expect_serving_again();
}

TEST(ClusterMembers, AMemberThatDoesNotLeadStandsStill) {
  UnderLoad under(three_members());
  const std::size_t follower = (under.cluster.etcd.leader() + 1) % 3;
  under.cluster.etcd.freeze(follower);
  under.expect_serving_again();
  under.cluster.etcd.thaw(follower);
  under.expect_serving_again();
}

TEST(ClusterMembers, AllMembersAreGoneForAWhileAndComeBack) {
  UnderLoad under(three_members());
  for (std::size_t i = 0; i < 3; ++i) under.cluster.etcd.kill(i);
  let_run(fault_lasts);
  under.cluster.etcd.start();
  under.expect_serving_again();
}

TEST(ClusterEtcdFaults, HistoryIsCompactedEverySecond) {
  UnderLoad under;
  for (int i = 0; i < 5; ++i) {
    under.cluster.etcd.etcdctl({"compact", revision(under.cluster.etcd)});
    let_run(1s);
  }
  under.expect_serving_again();
}

TEST(ClusterEtcdFaults, TheQuotaIsFullAndIsClearedByAnOperator) {
  ClusterSettings settings;
  settings.etcd.flags = {"--quota-backend-bytes=16777216"};
  UnderLoad under(settings);
  EtcdCluster& etcd = under.cluster.etcd;
  const std::string filling(120'000, 'x');
  bool full = false;
  for (int i = 0; i < 300 && !full; ++i) {
    try {
      etcd.etcdctl({"put", "/filling/" + std::to_string(i), filling});
    } catch (const std::runtime_error&) {
      full = etcd.etcdctl({"alarm", "list"}).find("NOSPACE") != std::string::npos;
    }
  }
  ASSERT_TRUE(full);
  let_run(fault_lasts);
  const std::size_t meanwhile = under.cluster.upstream.count("/started");
  let_run(UnderLoad::window);
  EXPECT_EQ(under.cluster.upstream.count("/started"), meanwhile) << "nothing can be claimed";
  etcd.etcdctl({"del", "--prefix", "/filling/"});
  etcd.etcdctl({"compact", revision(etcd)});
  etcd.etcdctl({"--command-timeout=30s", "defrag"});
  etcd.etcdctl({"alarm", "disarm"});
  under.expect_serving_again();
}

TEST(ClusterEtcdFaults, TokensOfAUserEndAfterSeconds) {
  const TemporaryDirectory folder;
  const std::filesystem::path password = folder.path() / "password";
  write_file(password, "open sesame\n");
  ClusterSettings settings;
  settings.etcd.flags = {"--auth-token-ttl=5"};
  settings.etcd.etcdctl_flags = {"--user=root:secret"};  // of no account until there are users
  settings.etcd_fields = ", username: weir, password_file: " + password.string();
  settings.prepare = [](EtcdCluster& etcd) {
    etcd.etcdctl({"user", "add", "root:secret"});
    etcd.etcdctl({"user", "grant-role", "root", "root"});
    etcd.etcdctl({"role", "add", "weir"});
    etcd.etcdctl({"role", "grant-permission", "weir", "readwrite", "--prefix=true", "/weir/v1/"});
    etcd.etcdctl({"user", "add", "weir:open sesame"});
    etcd.etcdctl({"user", "grant-role", "weir", "weir"});
    etcd.etcdctl({"auth", "enable"});
  };
  UnderLoad under(settings);
  let_run(7s);  // a token in use lives on; each replica's other connections' do not
  under.expect_serving_again();
  // The member forgets every token.
  under.cluster.etcd.kill(0);
  under.cluster.etcd.start(0);
  under.expect_serving_again();
}

TEST(ClusterEtcdFaults, ThatIsReplacedHasNothingClaimedInTheWindowOfTheChange) {
  UnderLoad under;
  wait_for_window(UnderLoad::window);
  let_run(300ms);  // used up, and most of it is left
  under.cluster.etcd.kill(0);
  under.cluster.etcd.wipe(0);
  under.cluster.etcd.start();
  const long changed = window_of(std::chrono::steady_clock::now(), UnderLoad::window);
  under.expect_serving_again();
  under.cluster.wait_until_ready();
  for (const SeenClaim& claim : under.cluster.claims("started:")) {
    std::tm utc{};
    ::strptime(claim.window.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    EXPECT_GT(::timegm(&utc) / UnderLoad::window.count(), changed) << claim.key;
  }
}

}  // namespace
}  // namespace weir::test
