// What may happen to etcd's members, under load: two of three are enough, and without a majority
// nothing is forwarded that was not claimed.

#include <gtest/gtest.h>

#include <iostream>

#include "integration/network_fault.h"
#include "integration/under_load.h"
#include "tests/cluster/judges.h"
#include "tests/support/eventually.h"

namespace weir::test {
namespace {

class IntegrationMembers : public UnderLoad {
 protected:
  void expect_all_well_again() {
    etcd().wait_until_healthy();
    cluster().wait_until_ready();
    expect_serving_again();
  }
};

TEST_F(IntegrationMembers, TheLeaderIsKilledAndComesBack) {
  const std::size_t leader = etcd().leader();
  etcd()[leader].kill();
  expect_serving_again();
  etcd()[leader].start();
  expect_all_well_again();
}

TEST_F(IntegrationMembers, TheLeaderStandsStillAndGoesOn) {
  const std::size_t leader = etcd().leader();
  etcd()[leader].pause();
  expect_serving_again();
  let_run(5s);
  etcd()[leader].unpause();
  expect_all_well_again();
}

TEST_F(IntegrationMembers, TheLeaderIsMovedAgainAndAgain) {
  for (int i = 0; i < 3; ++i) {
    etcd().move_leader((etcd().leader() + 1) % etcd().size());
    let_run(700ms);
  }
  expect_all_well_again();
}

TEST_F(IntegrationMembers, TheLeaderIsCutOffFromItsPeersAndStillTalksToReplicas) {
  Container& leader = etcd()[etcd().leader()];
  leader.disconnect("peers");
  expect_serving_again();
  leader.connect("peers");
  expect_all_well_again();
}

TEST_F(IntegrationMembers, TheLeaderIsCutOffFromReplicasAndStillTalksToItsPeers) {
  Container& leader = etcd()[etcd().leader()];
  leader.disconnect("store");
  expect_serving_again();
  leader.connect("store");
  expect_all_well_again();
}

TEST_F(IntegrationMembers, AMemberHearsItsPeersAndIsNotHeardByThem) {
  {
    const NetworkFault mute(cluster().project, etcd()[etcd().leader()], "peers",
                            NetworkFault::nothing_leaves());
    expect_serving_again();
  }
  expect_all_well_again();
}

TEST_F(IntegrationMembers, AllAreKilledAndStartedAgain) {
  for (std::size_t i = 0; i < etcd().size(); ++i) etcd()[i].kill();
  eventually(
      "no replica is ready",
      [&] {
        for (std::size_t i = 1; i <= cluster().replicas(); ++i) {
          if (cluster().not_ready(i).empty()) return false;
        }
        return true;
      },
      10s);
  const Instant now = std::chrono::steady_clock::now();
  let_run(2 * window);
  EXPECT_TRUE(between(cluster().recorder.arrivals("/started"), now, Instant::max()).empty())
      << "nothing can be claimed";
  for (std::size_t i = 0; i < etcd().size(); ++i) etcd()[i].start();
  expect_all_well_again();
}

TEST_F(IntegrationMembers, OneAfterAnotherIsRestartedAndNoRequestFails) {
  const Instant now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < etcd().size(); ++i) {
    etcd()[i].stop();
    etcd()[i].start();
    etcd().wait_until_healthy();
  }
  expect_all_well_again();
  EXPECT_EQ(load().failures("", now), "");
}

class IntegrationDisk : public UnderLoad {
 protected:
  IntegrationDisk() : UnderLoad({"integration/small-disk.yml"}) {}
};

TEST_F(IntegrationDisk, TheLeadersIsFullAndTheOtherTwoServeOn) {
  etcd().move_leader(2);
  docker({"exec", etcd()[2].id(), "sh", "-c", "dd if=/dev/zero of=/small/full bs=1M || true"});
  eventually("it gives up", [&] { return etcd()[2].address("store").empty(); });
  EXPECT_NE(etcd()[2].log().find("no space left on device"), std::string::npos);
  expect_serving_again();
}

}  // namespace
}  // namespace weir::test
