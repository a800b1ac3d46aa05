#include "tests/cluster/under_load.h"

#include <algorithm>
#include <iostream>
#include <set>

#include "tests/support/windows.h"

namespace weir::test {
namespace {

ClusterSettings with_all_modes(ClusterSettings settings) {
  settings.rules =
      "  - {name: started, match: {path: /started}, limit: 100, window: 2s}\n"
      "  - {name: large, match: {path: /large}, limit: 400, window: 2s}\n"
      "  - {name: sliding, match: {path: /sliding}, limit: 100, window: 2s, mode: sliding}\n"
      "  - {name: ample, match: {path: /ample}, limit: 1000, window: 2s}\n"
      "  - {name: in_flight, match: {path: /slow/in_flight}, limit: 40, mode: in_flight}\n";
  settings.slow = {"/slow", 300ms};
  return settings;
}

}  // namespace

UnderLoad::UnderLoad(ClusterSettings settings) : cluster(with_all_modes(std::move(settings))) {
  load_.emplace(cluster.doors,
                std::vector<Load::Stream>{{.path = "/started", .clients = 12},
                                          {.path = "/large", .clients = 12},
                                          {.path = "/sliding", .clients = 12},
                                          {.path = "/slow/in_flight", .clients = 20},
                                          {.path = "/ample", .clients = 2, .pause = 50ms}});
  expect_serving_again(patience);
}

UnderLoad::~UnderLoad() {
  load_->stop();
  const RecordingUpstream& upstream = cluster.upstream;
  expect_started_kept(upstream.arrivals("/started"), limit, window);
  expect_started_kept(upstream.arrivals("/large"), 400, window);
  expect_started_kept(upstream.arrivals("/ample"), 1000, window);
  expect_sliding_kept(upstream.arrivals("/sliding"), limit, window);
  EXPECT_LE(most_at_once(upstream.arrivals("/slow/in_flight")), 40);
}

void UnderLoad::expect_serving_again(Span within) {
  const Instant now = std::chrono::steady_clock::now();
  const long first = window_of(now, window);
  // What is forwarded may come from units that were in hand before; only who talks to etcd now has
  // claims of a window that had not begun then.
  const auto claimants = [&] {
    std::set<std::string> found;
    try {
      for (const SeenClaim& claim : cluster.claims("ample:")) {
        if (window_that_begins(claim.window, window) > first) found.insert(claim.replica);
      }
    } catch (const std::runtime_error&) {  // etcd does not answer yet
    }
    return found.size();
  };
  const Span took = eventually(
      "every replica claims and forwards where there is room, and a window is used up",
      [&] {
        const auto served = [&](const char* path) {
          return between(cluster.upstream.arrivals(path), now, Instant::max());
        };
        if (by_replica(served("/ample")).size() < cluster.doors.size()) return false;
        const WindowCounts counts = by_window(served("/started"), limit, window);
        const bool used_up = std::any_of(counts.begin(), counts.end(), [&](const auto& counted) {
          return counted.first > first && counted.second >= limit * 0.99;
        });
        return used_up && claimants() == cluster.doors.size();
      },
      within);
  if (took >= within) {
    const auto arrivals = cluster.upstream.arrivals("/started");
    std::cout << "with room for all:"
              << shares(between(cluster.upstream.arrivals("/ample"), now, Instant::max())) << "\n";
    for (const auto& [number, count] : by_window(arrivals, limit, window)) {
      std::cout << "window " << number - first << ": " << count << "\n";
    }
    std::cout << "since then:" << shares(between(arrivals, now, Instant::max())) << "\n";
  }
  std::cout << "serving again after " << took.count() << " ms\n";
}

}  // namespace weir::test
