// Replicas that die and replicas that stand still, under load.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "tests/cluster/under_load.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

TEST(ClusterReplicaFaults, ReplicasThatAreKilledAgainAndAgainNeverMakeItMore) {
  UnderLoad under;
  std::minstd_rand random(7);
  for (int i = 0; i < 9; ++i) {
    const std::size_t victim = random() % 3;
    // Just behind a window's start, where most is claimed and forwarded; or anywhere.
    if (i % 2 == 0) wait_for_window(UnderLoad::window);
    let_run(Span{random() % (i % 2 == 0 ? 30 : 700)});
    under.cluster.kill(victim);
    under.cluster.start(victim);  // the name is still taken; it serves all the same
  }
  under.expect_serving_again();
  under.cluster.wait_until_ready();
}

TEST(ClusterReplicaFaults, AReplicaThatStoodStillForwardsNothingOfAWindowThatIsOver) {
  UnderLoad under;
  for (const Span into : {1ms, 5ms, 20ms}) {
    wait_for_window(UnderLoad::window);
    let_run(into);  // while it forwards
    under.cluster[2].signal(SIGSTOP);
    // Into the second half of the next window, which the others have used up.
    wait_for_window(UnderLoad::window);
    const long now = window_of(std::chrono::steady_clock::now(), UnderLoad::window);
    // Else there would be room for what it must not send.
    eventually(
        "the others use it up",
        [&] {
          const auto before = under.cluster.upstream.arrivals("/started");
          return by_window(before, UnderLoad::limit, UnderLoad::window)[now] >=
                 (sanitized ? 90 : 99);
        },
        UnderLoad::window - 200ms);
    under.cluster[2].signal(SIGCONT);
  }
  under.expect_serving_again();
}

TEST(ClusterReplicaFaults, UnitsInHandOfAReplicaThatStoodStillAreVoidInTheNextWindow) {
  const std::size_t limit = sanitized ? 200 : 600;
  constexpr std::chrono::seconds window{3};
  Cluster cluster({.default_rule = "{limit: " + std::to_string(limit) + ", window: 3s}"});
  WeirdProcess& third = cluster[2];
  std::vector<RawClient> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(third.port());
  for (int round = 0; round < 2; ++round) {
    // In steady use it claims ahead.
    wait_for_window(window);
    const Instant began = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < limit / 2 && std::chrono::steady_clock::now() < began + 500ms;
         ++i) {
      EXPECT_EQ(clients[i % clients.size()].get("/foo?r3").status, 200);
    }
    third.signal(SIGSTOP);
    std::map<std::string, int> claimed;  // by window
    for (const SeenClaim& claim : cluster.claims()) claimed[claim.window] += claim.units;
    const auto forwarded = between(cluster.upstream.arrivals("/foo"), began, Instant::max());
    std::cout << claimed.rbegin()->second - static_cast<int>(forwarded.size())
              << " units are in hand\n";
    // While it stands still, more come to it than it has units, and the others use the next window
    // up.
    for (RawClient& client : clients) client.send("GET /foo?r3 HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_for_window(window);
    const long next = window_of(std::chrono::steady_clock::now(), window);
    Load others(cluster.doors, {{.path = "/foo", .clients = 12, .doors = {0, 1}}});
    const auto used = [&] {
      return by_window(cluster.upstream.arrivals("/foo"), static_cast<int>(limit), window)[next];
    };
    eventually(
        "the others use it up",
        [&] { return used() >= static_cast<double>(limit) * (sanitized ? 0.9 : 0.99); },
        window - 200ms);
    third.signal(SIGCONT);
    others.stop();
    // Served in a later window; or turned away, since etcd's answers are that old for it.
    for (RawClient& client : clients) {
      const int status = client.read_answer().status;
      EXPECT_TRUE(status == 200 || status == 503) << status;
    }
    eventually("it is ready", [&] { return not_ready(third).empty(); });
    eventually("it forwards again", [&] { return clients[0].get("/foo?r3").status == 200; });
  }
  expect_started_kept(cluster.upstream.arrivals("/foo"), static_cast<int>(limit), window);
}

}  // namespace
}  // namespace weir::test
