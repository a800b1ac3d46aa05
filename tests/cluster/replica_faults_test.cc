// Replicas that die and replicas that stand still, under load.

#include <gtest/gtest.h>
#include <signal.h>

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
  for (const Span into : {1ms, 4ms, 8ms, 15ms, 40ms}) {
    wait_for_window(UnderLoad::window);
    let_run(into);  // while it forwards
    under.cluster[2].signal(SIGSTOP);
    // Into the second half of the next window, which the others have used up.
    wait_for_window(UnderLoad::window);
    let_run(UnderLoad::window / 2);
    const auto before = under.cluster.upstream.arrivals("/started");
    EXPECT_GE(
        by_window(
            before, 100,
            UnderLoad::window)[window_of(std::chrono::steady_clock::now(), UnderLoad::window)],
        99);
    under.cluster[2].signal(SIGCONT);
  }
  under.expect_serving_again();
}

}  // namespace
}  // namespace weir::test
