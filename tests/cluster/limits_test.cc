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

// Units of sliding and in_flight are on their way for a round trip or two between one use and the
// next: about 90 % are in use where the machine keeps up, and less where it is busy with other
// work.
const double busy_use = sanitized ? 0.3 : 0.6;

void expect_everybody_served(const std::vector<Arrival>& arrivals, const Limited& limited,
                             double use) {
  std::cout << "limit " << limited.limit << ": use " << use * 100 << " %, of it" << shares(arrivals)
            << "\n";
  const auto counts = by_replica(arrivals);
  EXPECT_EQ(counts.size(), 3u) << "somebody got nothing of " << limited.limit;
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

TEST(ClusterLimits, AtMostLimitAreForwardedInAnyIntervalOfASlidingWindow) {
  const int many = sanitized ? 600 : 3000;
  const std::vector<Limited> limits{{100, 2s, 32}, {128, 2s, 32}, {129, 2s, 32}, {many, 3s, 32}};
  Cluster cluster({.rules = rules_for(limits, "sliding")});
  Load load(cluster.doors, streams_for(limits, "sliding"));
  let_run(11s);
  load.stop();
  for (const Limited& limited : limits) {
    const auto arrivals = cluster.upstream.arrivals(path_of(limited, "sliding"));
    expect_sliding_kept(arrivals, limited.limit, limited.window);
    const double use = sliding_use(arrivals, limited.limit, limited.window);
    expect_everybody_served(arrivals, limited, use);
    EXPECT_GE(use, busy_use) << "of " << limited.limit;
  }
}

TEST(ClusterLimits, AtMostLimitAreBeingServedAtAnyMoment) {
  std::vector<Limited> limits{{100, 0s, 64}, {128, 0s, 64}, {129, 0s, 64}};
  if (!sanitized) limits.push_back({1000, 0s, 500});
  Cluster cluster({.rules = rules_for(limits, "in_flight"), .slow = {"/slow", 600ms}});
  Load load(cluster.doors, streams_for(limits, "in_flight"));
  let_run(10s);
  const Instant end = std::chrono::steady_clock::now();
  load.stop();
  for (const Limited& limited : limits) {
    const auto arrivals = cluster.upstream.arrivals(path_of(limited, "in_flight"));
    EXPECT_LE(most_at_once(arrivals), limited.limit);
    const double use = mean_at_once(arrivals, end - 7s, end) / limited.limit;
    expect_everybody_served(between(arrivals, end - 7s, end), limited, use);
    EXPECT_GE(use, busy_use) << "of " << limited.limit;
  }
}

}  // namespace
}  // namespace weir::test
