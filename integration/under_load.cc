#include "integration/under_load.h"

#include <algorithm>
#include <iostream>

#include "integration/claims.h"
#include "tests/cluster/judges.h"
#include "tests/support/eventually.h"
#include "tests/support/window_time.h"

namespace weir::test {
namespace {

const std::string rules =
    "  - {name: started, match: {path: /started}, limit: 100, window: 2s}\n"
    "  - {name: sliding, match: {path: /sliding}, limit: 100, window: 2s, mode: sliding}\n"
    "  - {name: ample, match: {path: /ample}, limit: 1000, window: 2s}\n"
    "  - {name: in_flight, match: {path: /slow}, limit: 40, mode: in_flight}\n";

Recorder::Reply behave(const std::string& path) {
  return {.status = 200, .after = path == "/slow" ? Span{300} : Span{0}};
}

}  // namespace

std::unique_ptr<Cluster> UnderLoad::cluster_;

void UnderLoad::SetUp() {
  if (!cluster_)
    cluster_ = std::make_unique<Cluster>(
        ClusterSettings{.rules = rules, .behaviour = behave, .files = files_});
  began_ = std::chrono::steady_clock::now();
  const std::vector<std::string> doors = cluster_->all_doors();
  load_ = std::make_unique<Load>(
      cluster_->doors,
      std::vector<Load::Stream>{{.path = "/started", .clients = 5, .doors = doors},
                                {.path = "/sliding", .clients = 5, .doors = doors},
                                {.path = "/slow", .clients = 15, .doors = doors},
                                {.path = "/ample", .clients = 1, .doors = doors, .pause = 50ms}});
  expect_serving_again();
}

void UnderLoad::ask_more(std::vector<Load::Stream> streams) {
  more_ = std::make_unique<Load>(cluster_->doors, std::move(streams));
}

void UnderLoad::TearDown() {
  if (!load_) return;
  // Not what is forwarded for those who wait while others leave one by one: a recorder does not
  // notice leaving.
  const Instant until = std::chrono::steady_clock::now();
  load_->stop();
  if (more_) more_->stop();
  const Recorder& recorder = cluster_->recorder;
  eventually("all that was forwarded is answered", [&] { return recorder.idle(); });
  expect_started_kept(recorder.arrivals("/started"), limit, window);
  expect_started_kept(recorder.arrivals("/ample"), 1000, window);
  expect_sliding_kept(recorder.arrivals("/sliding"), limit, window);
  EXPECT_LE(most_at_once(between(recorder.arrivals("/slow"), began_, until)), 40);
  for (const char* path : {"/started", "/ample", "/sliding", "/slow"}) {
    EXPECT_EQ(recorder.repeated(path), 0) << path << ": a request that was not to be sent again";
  }
  if (!HasFailure()) return;
  for (std::size_t i = 1; i <= cluster_->replicas(); ++i) {
    std::cout << Cluster::door(i) << ":\n" << cluster_->replica(i).log() << "\n";
  }
  cluster_.reset();
}

void UnderLoad::TearDownTestSuite() {
  if (cluster_) judge_claims();
  cluster_.reset();
}

void UnderLoad::judge_claims() {
  const Recorder& recorder = cluster_->recorder;
  expect_claims_kept(cluster_->etcd, "started", limit, recorder.arrivals("/started"));
  expect_claims_kept(cluster_->etcd, "ample", 1000, recorder.arrivals("/ample"));
  for (const auto& [all, units] : cluster_->etcd.most_claimed("in_flight")) {
    EXPECT_LE(units, 40) << all;
  }
}

void UnderLoad::expect_serving_again() { expect_serving_again(cluster_->all_doors()); }

void UnderLoad::expect_serving_again(const std::vector<std::string>& doors, Span within) {
  const Instant now = std::chrono::steady_clock::now();
  const long first = window_of(now, window);
  const Recorder& recorder = cluster_->recorder;
  const auto all_serve = [&] {
    const auto served = by_replica(between(recorder.arrivals("/ample"), now, Instant::max()));
    return std::all_of(doors.begin(), doors.end(),
                       [&](const std::string& door) { return served.contains(door); });
  };
  const auto used_up = [&] {
    const auto arrivals = between(recorder.arrivals("/started"), now, Instant::max());
    const WindowCounts counts = by_window(arrivals, limit, window);
    return std::any_of(counts.begin(), counts.end(), [&](const auto& counted) {
      return counted.first > first && counted.second >= limit * 0.99;
    });
  };
  // What is forwarded may come from units that were in hand before; only who talks to a majority of
  // etcd now has claims of a window that had not begun then.
  const auto all_claim = [&] {
    const std::set<std::string> claimants = claimants_since(cluster_->etcd, "ample", now);
    return std::all_of(doors.begin(), doors.end(), [&](const std::string& door) {
      return claimants.contains(cluster_->replica_behind(door));
    });
  };
  const Span took = eventually(
      "every replica claims and forwards where there is room, and a window is used up",
      [&] { return all_serve() && used_up() && all_claim(); }, within);
  std::cout << "serving again after " << took.count() << " ms\n";
}

}  // namespace weir::test
