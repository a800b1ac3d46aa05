// What clients of the load balancer see while replicas stop, start, come and go: nothing.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "integration/claims.h"
#include "integration/cluster.h"
#include "tests/cluster/judges.h"
#include "tests/support/eventually.h"
#include "tests/support/window_time.h"

namespace weir::test {
namespace {

constexpr int limit = 60;
constexpr std::chrono::seconds window{2};

class IntegrationBalancer : public ::testing::Test {
 protected:
  IntegrationBalancer()
      : cluster({.rules = "  - {name: limited, match: {path: /limited}, limit: 60, window: 2s}\n"
                          "  - {name: ample, match: {path: /**}, limit: 100000, window: 2s}\n",
                 .behaviour =
                     [](const std::string& path) {
                       return Recorder::Reply{.after = path == "/slow" ? 300ms : Span{0}};
                     },
                 .services = {{"etcd1", "etcd2", "etcd3"}, {"weird"}, {"balancer"}}}) {
    cluster.wait_until_balanced(3);
    load.emplace(cluster.doors, std::vector<Load::Stream>{{"/quick", 4, {"balancer"}, 5ms},
                                                          {"/posted", 4, {"balancer"}, 5ms, "POST"},
                                                          {"/slow", 10, {"balancer"}},
                                                          {"/limited", 20, {"balancer"}}});
  }

  void expect_no_failure() {
    load->stop();
    EXPECT_EQ(load->failures("/quick"), "");
    EXPECT_EQ(load->failures("/posted"), "");
    EXPECT_EQ(load->failures("/slow"), "");
    EXPECT_GT(load->answers("/quick").size(), 500u);
    EXPECT_GT(load->answers("/posted").size(), 500u);
    EXPECT_GT(load->answers("/slow").size(), 100u);
    EXPECT_EQ(cluster.recorder.repeated("/posted"), 0) << "none is sent twice";
    expect_started_kept(cluster.recorder.arrivals("/limited"), limit, window);
    expect_claims_kept(cluster.etcd, "limited", limit, cluster.recorder.arrivals("/limited"));
    // Those in line at a replica that stops are told to come again, and lose nothing else.
    for (const Answered& answer : load->answers("/limited")) {
      EXPECT_TRUE(answer.status == 200 || answer.reason == "draining")
          << answer.status << " " << answer.reason;
    }
  }

  Cluster cluster;
  std::optional<Load> load;
};

TEST_F(IntegrationBalancer, ReplicasAreRestartedOneAfterAnotherAndNoRequestFails) {
  for (std::size_t i = 1; i <= cluster.replicas(); ++i) {
    cluster.replica(i).stop();
    let_run(1s);
    cluster.replica(i).start();
    cluster.look_around();
    cluster.wait_until_ready(i);
    cluster.wait_until_balanced(3);
  }
  cluster.wait_until_all_forward();
  expect_no_failure();
}

TEST_F(IntegrationBalancer, FromThreeReplicasToFiveAndBackTheLimitIsTheSameAndNoRequestFails) {
  const auto uses_the_limit = [&] {
    const Instant from = std::chrono::steady_clock::now();
    const long first = window_of(from, window);
    eventually("a whole window is used up", [&] {
      const auto counts = by_window(
          between(cluster.recorder.arrivals("/limited"), from, Instant::max()), limit, window);
      return std::any_of(counts.begin(), counts.end(), [&](const auto& counted) {
        return counted.first > first && counted.second >= limit * 0.99;
      });
    });
  };
  cluster.scale(5);
  cluster.wait_until_ready();
  cluster.wait_until_balanced(5);
  cluster.wait_until_all_forward();
  uses_the_limit();
  cluster.scale(3);
  cluster.wait_until_ready();
  cluster.wait_until_balanced(3);
  cluster.wait_until_all_forward();
  uses_the_limit();
  expect_no_failure();
}

}  // namespace
}  // namespace weir::test
