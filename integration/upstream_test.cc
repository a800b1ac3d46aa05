// What the cluster as a whole keeps from an upstream, and from those who share it with a tenant who
// asks for too much.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>

#include "integration/claims.h"
#include "integration/cluster.h"
#include "tests/cluster/judges.h"
#include "tests/support/eventually.h"
#include "tests/support/window_time.h"

namespace weir::test {
namespace {

constexpr std::chrono::seconds window{2};

TEST(IntegrationUpstream, RetriesOfAllReplicasTogetherStayWithinTheirBudgetAndTheLimit) {
  std::atomic<bool> fails = false;
  Cluster cluster(
      {.rules = "  - {name: limited, match: {path: /limited}, limit: 100, window: 2s}\n"
                "  - {name: ample, match: {path: /**}, unlimited: true}\n",
       .upstream_fields =
           "    service_config: {methodConfig: [{name: [{}], retryPolicy: {maxAttempts: 5, "
           "initialBackoff: 0.01s, maxBackoff: 0.1s, backoffMultiplier: 2, "
           "retryableStatusCodes: [UNAVAILABLE]}}]}\n"
           "    retry_budget: {percent: 20, min_per_second: 1, ttl: 5s}\n",
       .behaviour = [&](const std::string&) {
         return Recorder::Reply{.status = fails ? 503 : 200};
       }});
  Load load(cluster.doors,
            {{"/storm", 6, cluster.all_doors(), 10ms}, {"/limited", 10, cluster.all_doors()}});
  const auto retries = [&] {
    return cluster.recorder.repeated("/storm") + cluster.recorder.repeated("/limited");
  };
  const Instant began = std::chrono::steady_clock::now();
  let_run(3s);
  EXPECT_EQ(retries(), 0);
  fails = true;
  let_run(6s);
  fails = false;
  // A fifth of what was asked, and for each replica one a second, of which it may save up five.
  const auto firsts = static_cast<double>(cluster.recorder.count()) - retries();
  const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - began;
  const double allowed = 0.2 * firsts + 3 * (5 + lasted.count());
  std::cout << firsts << " requests, " << retries() << " retries, " << allowed << " allowed\n";
  EXPECT_LE(retries(), allowed);
  EXPECT_GE(retries(), 0.1 * firsts) << "retries are on";
  let_run(500ms);
  const Instant recovered = std::chrono::steady_clock::now();
  let_run(3s);
  load.stop();
  EXPECT_EQ(load.failures("/storm", recovered), "");
  expect_started_kept(cluster.recorder.arrivals("/limited"), 100, window);
  expect_claims_kept(cluster.etcd, "limited", 100, cluster.recorder.arrivals("/limited"));
}

TEST(IntegrationUpstream, ATenantWhoAsksForTooMuchTakesTurnsWithOneWhoDoesNot) {
  constexpr int modest = 10;
  Cluster cluster({.rules = "  - {name: fair, match: {path: /shared/**}, resource: shared, "
                            "queue: fair, limit: 60, window: 2s}\n",
                   .tenant = "segment:2"});
  Load load(cluster.doors, {{"/shared/greedy", 40, cluster.all_doors()},
                            {"/shared/modest", modest, cluster.all_doors()}});
  let_run(window);  // all are in line
  wait_for_window(window);
  const long first = window_of(std::chrono::steady_clock::now(), window);
  let_run(5 * window - 100ms);
  load.stop();
  std::map<std::pair<long, std::string>, int> all, of_modest;  // by window and replica
  int forwarded = 0;
  for (const Arrival& arrival : cluster.recorder.arrivals()) {
    const long number = arrival.wall.time_since_epoch() / window;
    if (number < first || number >= first + 5) continue;
    ++forwarded;
    ++all[{number, arrival.replica}];
    of_modest[{number, arrival.replica}] += arrival.path == "/shared/modest";
  }
  // Every other unit of a replica's, until all of the modest who were in line have had one. Each is
  // one who asks again at once, so one may be on its way.
  for (const auto& [where, count] : all) {
    std::cout << where.second << " " << of_modest[where] << " of " << count << "; ";
    EXPECT_GE(of_modest[where], std::min(modest, count / 2) - 1)
        << "of " << count << " in window " << where.first - first << " by " << where.second;
  }
  std::cout << "\n";
  EXPECT_GE(forwarded, 5 * 59) << "and the rest of the limit is the other's";
  expect_started_kept(cluster.recorder.arrivals(), 60, window);
  expect_claims_kept(cluster.etcd, "fair", 60, cluster.recorder.arrivals());
}

// Serves so many requests a second; the rest are told that it is overloaded.
class Overloaded {
 public:
  explicit Overloaded(int per_second) : per_second_(per_second) {}
  Recorder::Reply answer(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    tokens_ += per_second_ * std::chrono::duration<double>(now - last_).count();
    tokens_ = std::min(tokens_, per_second_ / 10.0);
    last_ = now;
    if (tokens_ < 1) return {.status = 503};
    tokens_ -= 1;
    ++served_[path];
    return {};
  }
  std::map<std::string, int> served() const {
    const std::lock_guard lock(mutex_);
    return served_;
  }

 private:
  const int per_second_;
  mutable std::mutex mutex_;
  double tokens_ = 0;  // guarded by mutex_, as is what follows
  std::map<std::string, int> served_;
  Instant last_ = std::chrono::steady_clock::now();
};

TEST(IntegrationUpstream, ATenantWhoOverloadsItIsThrottledAndAnotherIsServed) {
  Overloaded upstream(120);
  // So many buckets that the two hardly ever share one, as with 17 they would in every third run.
  Cluster cluster(
      {.rules = "  - {name: all, match: {path: /**}, unlimited: true}\n",
       .tenant = "segment:1",
       .upstream_fields = "    throttle: {kind: sfq, initial_rate: 50, buckets: 1009}\n",
       .behaviour = [&](const std::string& path) { return upstream.answer(path); }});
  Load load(cluster.doors,
            {{"/greedy", 20, cluster.all_doors()}, {"/modest", 1, cluster.all_doors(), 100ms}});
  let_run(6s);  // to learn
  const Instant now = std::chrono::steady_clock::now();
  const auto before = upstream.served();
  let_run(6s);
  const auto after = upstream.served();
  const auto arrivals = between(cluster.recorder.arrivals(), now, Instant::max());
  load.stop();
  // What was asked of the replicas, what of it came to the upstream, what it served of that.
  struct Story {
    double asked, offered, served;
  };
  const auto story = [&](const std::string& path) {
    const auto offered = std::count_if(arrivals.begin(), arrivals.end(),
                                       [&](const Arrival& one) { return one.path == path; });
    const Story told{static_cast<double>(load.answers(path, now).size()),
                     static_cast<double>(offered),
                     static_cast<double>(after.at(path) - before.at(path))};
    std::cout << path << ": " << told.asked << " asked, " << told.offered << " offered, "
              << told.served << " served (" << load.failures(path, now) << ")\n";
    return told;
  };
  const Story greedy = story("/greedy"), modest = story("/modest");
  EXPECT_LT(greedy.served, 0.5 * greedy.asked);
  EXPECT_LT(greedy.offered, 0.8 * greedy.asked) << "turned away before the upstream";
  EXPECT_GT(modest.served, 0.7 * modest.asked);
  EXPECT_GT(modest.offered, 0.7 * modest.asked);
  EXPECT_TRUE(cluster.etcd.most_claimed("all").empty()) << "what has no limit takes no units";
}

}  // namespace
}  // namespace weir::test
