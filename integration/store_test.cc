// What may happen between a replica and etcd, under load: the one that is cut off says so and turns
// away what it cannot be sure of, the others use the limit up, and all serve again once it is over.

#include <gtest/gtest.h>

#include <iostream>
#include <optional>

#include "integration/network_fault.h"
#include "integration/under_load.h"
#include "tests/cluster/judges.h"
#include "tests/support/eventually.h"
#include "tests/support/window_time.h"

namespace weir::test {
namespace {

class IntegrationStore : public UnderLoad {
 protected:
  // r3 has been cut off from etcd.
  void expect_third_turns_away() {
    eventually(
        "r3 says why it is not ready",
        [&] { return cluster().not_ready(3).find("store") != std::string::npos; }, 10s);
    eventually(
        "r3 turns clients away",
        [&] {
          for (const Answered& answer : load().answers("/started")) {
            if (answer.door == "r3" && answer.reason == "store_unavailable") return true;
          }
          return false;
        },
        10s);
    expect_serving_again({"r1", "r2"});
    const auto forwarded = cluster().recorder.count("/ample");
    const Instant now = std::chrono::steady_clock::now();
    let_run(window);
    EXPECT_GT(cluster().recorder.count("/ample"), forwarded);
    const auto meanwhile = between(cluster().recorder.arrivals("/started"), now, Instant::max());
    EXPECT_FALSE(by_replica(meanwhile).contains("r3")) << "with no claim that it can have";
    EXPECT_EQ(cluster().not_ready(1), "");
    EXPECT_EQ(cluster().not_ready(2), "");
  }

  void expect_third_recovers() {
    cluster().wait_until_ready(3);
    expect_serving_again();
  }
};

TEST_F(IntegrationStore, AReplicaLosesItsNetworkToEtcdAndGetsItBack) {
  cluster().replica(3).disconnect("store");
  expect_third_turns_away();
  cluster().replica(3).connect("store");
  expect_third_recovers();
}

TEST_F(IntegrationStore, NothingPassesBetweenAReplicaAndEtcd) {
  {
    const NetworkFault silence(cluster().project, cluster().replica(3), "store",
                               NetworkFault::silence());
    expect_third_turns_away();
  }
  expect_third_recovers();
}

TEST_F(IntegrationStore, WhatAReplicaSendsNeverGetsToEtcd) {
  {
    const NetworkFault cut(cluster().project, cluster().replica(3), "store",
                           NetworkFault::nothing_leaves());
    expect_third_turns_away();
  }
  expect_third_recovers();
}

TEST_F(IntegrationStore, WhatEtcdAnswersNeverGetsToAReplica) {
  {
    const NetworkFault cut(cluster().project, cluster().replica(3), "store",
                           NetworkFault::nothing_arrives());
    expect_third_turns_away();
  }
  expect_third_recovers();
}

TEST_F(IntegrationStore, WhoIsCutOffForLongerThanItsLeaseLosesItsLocksAndTakesNoMore) {
  const std::vector<std::string> lost{"event=\"lost\"", "rule=\"in_flight\""};
  const double before = cluster().metric(3, "weir_units_total", lost);
  {
    const NetworkFault silence(cluster().project, cluster().replica(3), "store",
                               NetworkFault::silence());
    const Span took = eventually(
        "r3 says that it has lost units in flight",
        [&] { return cluster().metric(3, "weir_units_total", lost) > before; }, 20s);
    std::cout << "lost after " << took.count() << " ms\n";
    let_run(500ms);  // those that it had sent are answered
    const Instant now = std::chrono::steady_clock::now();
    expect_serving_again({"r1", "r2"});
    ask_more({{.path = "/slow", .clients = 10, .doors = {"r1", "r2"}}});
    eventually(
        "the others have its locks",
        [&] {
          const Instant until = std::chrono::steady_clock::now();
          return mean_at_once(cluster().recorder.arrivals("/slow"), until - 1s, until) >= 0.9 * 40;
        },
        20s);
    const auto meanwhile = between(cluster().recorder.arrivals("/slow"), now, Instant::max());
    EXPECT_FALSE(by_replica(meanwhile).contains("r3")) << "with no lease";
  }
  expect_third_recovers();
}

TEST_F(IntegrationStore, PacketsAreLateAndLost) {
  std::vector<std::unique_ptr<NetworkFault>> faults;
  for (std::size_t i = 1; i <= cluster().replicas(); ++i) {
    faults.push_back(std::make_unique<NetworkFault>(
        cluster().project, cluster().replica(i), "store", NetworkFault::slow(100ms, 50ms, 0.05)));
  }
  // A claim takes what those in line need. The five clients that are there ask for no more than
  // five units in a round trip, of which a window has room for a few; these ask for a replica's
  // part at once.
  ask_more({{.path = "/started", .clients = limit / 3, .doors = cluster().all_doors()}});
  wait_for_window(window);
  const Instant now = std::chrono::steady_clock::now();
  let_run(6 * window);
  const auto forwarded = [&](const char* path) {
    return between(cluster().recorder.arrivals(path), now, now + 6 * window);
  };
  EXPECT_EQ(by_replica(forwarded("/ample")).size(), 3u) << "all serve";
  const double use = static_cast<double>(forwarded("/started").size()) / (6 * limit);
  std::cout << use << " of the limit is used;" << shares(forwarded("/started")) << "\n";
  EXPECT_GE(use, 0.75) << "a window is over after a few round trips; three are needed in turn";
  EXPECT_EQ(load().failures("", now), "") << "nobody is turned away";
  for (const auto& fault : faults) {
    const NetworkFault::Did did = fault->end();
    std::cout << did.met << " packets, " << did.lost << " of them lost, the others late by "
              << did.held.count() << " ms; ";
    EXPECT_GT(did.met, 500) << "each way";
    EXPECT_NEAR(static_cast<double>(did.lost) / static_cast<double>(did.met), 0.05, 0.03);
    EXPECT_GE(did.held, 90ms);
  }
  std::cout << "\n";
  expect_third_recovers();
}

}  // namespace
}  // namespace weir::test
