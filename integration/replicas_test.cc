// Replicas that die or stand still, under load.

#include <gtest/gtest.h>

#include <iostream>

#include "integration/under_load.h"
#include "tests/cluster/judges.h"
#include "tests/support/eventually.h"
#include "tests/support/window_time.h"

namespace weir::test {
namespace {

class IntegrationReplicas : public UnderLoad {};

TEST_F(IntegrationReplicas, OneIsKilledWhileItClaimsAndForwardsAndTheOthersHaveItsUnits) {
  for (const Span into : {5ms, 20ms, 600ms}) {
    wait_for_window(window);
    let_run(into);
    cluster().replica(2).kill();
    expect_serving_again({"r1", "r3"});
    cluster().replica(2).start();
    cluster().look_around();
    expect_serving_again();
  }
  cluster()
      .wait_until_ready();  // its name is free once the lease of the one that was killed has ended
}

TEST_F(IntegrationReplicas, OneStandsStillAndForwardsNothingOfAWindowThatIsOver) {
  int used_up = 0;
  for (const auto& [into, stands_still] :
       {std::pair<Span, Span>{5ms, 100ms}, {20ms, 100ms}, {10ms, 14s}}) {
    wait_for_window(window);
    let_run(into);  // while it forwards
    cluster().replica(3).pause();
    let_run(stands_still);  // at last, for longer than the leases of its claims
    // It wakes in a window that the others have used up, where there is no room for what it must
    // not send. A slow machine does not always get that far; then there is less to catch it at.
    wait_for_window(window);
    const Instant latest = std::chrono::steady_clock::now() + window - 300ms;
    const long now = window_of(latest, window);
    const auto used = [&] {
      return by_window(cluster().recorder.arrivals("/started"), limit, window)[now];
    };
    while (used() < limit && std::chrono::steady_clock::now() < latest) let_run(20ms);
    std::cout << used() << " are used when it wakes\n";
    used_up += used() >= limit * 0.99;
    cluster().replica(3).unpause();
    expect_serving_again();
  }
  EXPECT_GE(used_up, 1) << "there was nothing to catch it at";
  cluster().wait_until_ready();
}

}  // namespace
}  // namespace weir::test
