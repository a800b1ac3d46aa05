// Three replicas and more demand than the limits have units: never over, nearly all of it used, and
// everybody gets a share. Each test has several limits at once, each a rule and a path of its own:
// up to 128 a claim is one unit, above that several.

#include <gtest/gtest.h>

#include <iostream>

#include "tests/cluster/cluster.h"
#include "tests/cluster/judges.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

struct Limited {
  int limit;
  std::chrono::seconds window;  // 0: in_flight
  int clients;                  // at each replica
};

std::string path_of(const Limited& limited, const std::string& mode) {
  return "/slow/" + mode + std::to_string(limited.limit);
}

std::string rules_for(const std::vector<Limited>& limits, const std::string& mode) {
  std::string rules;
  for (const Limited& limited : limits) {
    rules += "  - {name: " + mode + std::to_string(limited.limit) +
             ", match: {path: " + path_of(limited, mode) +
             "}, limit: " + std::to_string(limited.limit) + ", mode: " + mode;
    if (limited.window.count() > 0) {
      rules += ", window: " + std::to_string(limited.window.count()) + "s";
    }
    rules += "}\n";
  }
  return rules;
}

std::vector<Load::Stream> streams_for(const std::vector<Limited>& limits, const std::string& mode) {
  std::vector<Load::Stream> streams;
  for (const Limited& limited : limits) {
    streams.push_back({.path = path_of(limited, mode), .clients = limited.clients});
  }
  return streams;
}

// A sanitizer makes everything ten times slower, and looks at the code and not at the use.
const double least_use = sanitized ? 0.5 : 0.99;
// Of a third.
const double least_share = 0.5;

void expect_everybody_served(const std::vector<Arrival>& arrivals, const Limited& limited,
                             double use) {
  std::cout << "limit " << limited.limit << ": use " << use * 100 << " %, of it" << shares(arrivals)
            << "\n";
  const auto counts = by_replica(arrivals);
  EXPECT_EQ(counts.size(), 3u) << "somebody got nothing of " << limited.limit;
  for (const auto& [replica, count] : counts) {
    EXPECT_GE(count * 3, static_cast<double>(arrivals.size()) * least_share)
        << replica << " of " << limited.limit;
  }
  EXPECT_GE(use, least_use) << "of " << limited.limit;
}

TEST(ClusterLimits, AtMostLimitAreForwardedInOneWindowAndUnderDemandNearlyAllAre) {
  const int many = sanitized ? 600 : 6000;
  const std::vector<Limited> limits{{100, 2s, 8}, {128, 2s, 8}, {129, 2s, 8}, {many, 4s, 16}};
  Cluster cluster({.rules = rules_for(limits, "started")});
  wait_for_window(4s);
  const long first = window_of(std::chrono::steady_clock::now(), 2s);
  Load load(cluster.doors, streams_for(limits, "started"));
  let_run(12s - on_its_way);
  load.stop();
  for (const Limited& limited : limits) {
    const auto arrivals = cluster.upstream.arrivals(path_of(limited, "started"));
    expect_started_kept(arrivals, limited.limit, limited.window);
    WindowCounts counts = by_window(arrivals, limited.limit, limited.window);
    const long begin = first * 2 / limited.window.count(), windows = 12 / limited.window.count();
    double sum = 0;
    for (long window = begin; window < begin + windows; ++window) {
      EXPECT_GE(counts[window], limited.limit * 0.99) << "of " << limited.limit;
      sum += counts[window];
    }
    expect_everybody_served(arrivals, limited, sum / static_cast<double>(windows) / limited.limit);
  }
}

// In ten seconds the way from one use of a unit to the next takes less than one in a hundred.
TEST(ClusterLimits, AtMostLimitAreForwardedInAnyIntervalOfASlidingWindow) {
  const int many = sanitized ? 600 : 6000;
  const std::vector<Limited> limits{
      {100, 10s, 12}, {128, 10s, 12}, {129, 10s, 12}, {many, 10s, 32}};
  Cluster cluster({.rules = rules_for(limits, "sliding")});
  Load load(cluster.doors, streams_for(limits, "sliding"));
  let_run(42s);
  load.stop();
  for (const Limited& limited : limits) {
    const auto arrivals = cluster.upstream.arrivals(path_of(limited, "sliding"));
    expect_sliding_kept(arrivals, limited.limit, limited.window);
    expect_everybody_served(arrivals, limited,
                            sliding_use(arrivals, limited.limit, limited.window));
  }
}

// A unit is on its way from one request that has ended to the next for milliseconds; requests that
// take seconds show what the units are used for.
TEST(ClusterLimits, AtMostLimitAreBeingServedAtAnyMoment) {
  std::vector<Limited> limits{{100, 0s, 50}, {128, 0s, 60}, {129, 0s, 60}};
  if (!sanitized) limits.push_back({6000, 0s, 2300});
  Cluster cluster({.rules = rules_for(limits, "in_flight"), .slow = {"/slow", 6s, 12s}});
  Load load(cluster.doors, streams_for(limits, "in_flight"));
  let_run(12s);
  const Instant settled = std::chrono::steady_clock::now();
  let_run(30s);
  const Instant end = std::chrono::steady_clock::now();
  load.stop();
  for (const Limited& limited : limits) {
    const auto arrivals = cluster.upstream.arrivals(path_of(limited, "in_flight"));
    EXPECT_LE(most_at_once(arrivals), limited.limit);
    expect_everybody_served(between(arrivals, settled, end), limited,
                            mean_at_once(arrivals, settled, end) / limited.limit);
  }
}

// The connection to the upstream is closed before the unit goes to the next, on whatever worker
// that is.
TEST(ClusterLimits, AClientThatLeavesTakesItsRequestWithItBeforeTheNextIsSent) {
  const std::vector<Limited> limits{{1, 0s, 6}, {3, 0s, 6}, {40, 0s, 40}};
  Cluster cluster({.rules = rules_for(limits, "in_flight"), .slow = {"/slow", 5ms, 30ms}});
  std::vector<Load::Stream> streams = streams_for(limits, "in_flight");
  for (Load::Stream& stream : streams) stream.leaves = 40ms;
  Load load(cluster.doors, streams);
  let_run(10s);
  load.stop();
  for (const Limited& limited : limits) {
    const auto arrivals = cluster.upstream.arrivals(path_of(limited, "in_flight"));
    std::cout << "limit " << limited.limit << ": " << arrivals.size() << " requests, at most "
              << most_at_once(arrivals) << " at once\n";
    EXPECT_GE(arrivals.size(), 300u);
    EXPECT_LE(most_at_once(arrivals), limited.limit);
  }
}

}  // namespace
}  // namespace weir::test
