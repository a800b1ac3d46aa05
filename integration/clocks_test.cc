// Replicas whose clocks are wrong. Each names windows by its own clock, and nobody can say which
// window an arrival is of; etcd's history can.

#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "integration/claims.h"
#include "integration/cluster.h"
#include "tests/cluster/judges.h"
#include "tests/support/eventually.h"

namespace weir::test {
namespace {

constexpr int limit = 100;
constexpr auto window = claims_window;

class ThirdWithItsOwnClock {
 public:
  // As libfaketime says it: `1` leaves the monotonic clock alone, `0` does not.
  explicit ThirdWithItsOwnClock(const std::string& wall_clock_alone)
      : cluster_({.rules = "  - {name: started, match: {path: /started}, limit: 100, window: 2s}\n"
                           "  - {name: ample, match: {path: /**}, limit: 10000, window: 2s}\n",
                  .files = {"integration/clocks.yml"},
                  .variables = {{"WALL_CLOCK_ALONE", wall_clock_alone}}}),
        load_(cluster_.doors,
              {{"/started", 5, cluster_.all_doors()}, {"/ample", 1, cluster_.all_doors(), 50ms}}) {}

  void set(const std::string& clock) {
    docker({"exec", cluster_.replica(3).id(), "sh", "-c", "echo '" + clock + "' > /clock/is"});
    let_run(1500ms);  // it is looked at once a second
  }
  void restart() {
    cluster_.replica(3).kill();
    cluster_.replica(3).start();
    cluster_.look_around();
    eventually("r3 listens", [this] { return cluster_.not_ready(3) != "no answer"; });
  }
  // For a while; who forwarded where there is room for all.
  std::set<std::string> serving() {
    const Instant now = std::chrono::steady_clock::now();
    let_run(2 * window);
    const auto started = between(cluster_.recorder.arrivals("/started"), now, Instant::max());
    const auto ample = between(cluster_.recorder.arrivals("/ample"), now, Instant::max());
    std::cout << "of " << started.size() << shares(started) << "; with room" << shares(ample)
              << "\n";
    EXPECT_GE(started.size(), static_cast<std::size_t>(limit)) << "a window is used";
    std::set<std::string> all;
    for (const auto& [door, count] : by_replica(ample)) all.insert(door);
    return all;
  }

  void judge() {
    load_.stop();
    for (const char* door : {"r1", "r2"}) {
      EXPECT_EQ(load_.failures("").find(door), std::string::npos) << load_.failures("");
    }
    long claimed = 0;
    const MostClaimed all = expect_no_window_overdrawn(cluster_.etcd, "started", limit);
    for (const auto& [start, units] : all) claimed += units;
    EXPECT_LE(cluster_.recorder.count("/started"), static_cast<std::size_t>(claimed));
    std::cout << all.size() << " windows from " << all.begin()->first << " to "
              << all.rbegin()->first << "\n";
  }

 private:
  Cluster cluster_;
  Load load_;
};

const std::set<std::string> everybody{"r1", "r2", "r3"};

TEST(IntegrationClocks, AReplicaAnHourAheadOrBehindTakesNoMoreThanAWindowHas) {
  ThirdWithItsOwnClock third("1");
  third.set("+3600");
  EXPECT_EQ(third.serving(), everybody);
  third.set("+0");  // set back, it opens no window again before it is where it was, or is restarted
  EXPECT_GE(third.serving().size(), 2u);
  third.set("-3600");
  third.restart();
  EXPECT_EQ(third.serving(), everybody);
  third.judge();
}

TEST(IntegrationClocks, AReplicaWhoseClocksRunAtHalfOrTwiceTheirSpeedTakesNoMoreThanAWindowHas) {
  ThirdWithItsOwnClock third("0");
  for (const char* rate : {"+0 x0.5", "+0 x2"}) {
    third.set(rate);
    third.restart();
    EXPECT_EQ(third.serving(), everybody) << rate;
  }
  third.judge();
}

}  // namespace
}  // namespace weir::test
