// What replicas do while etcd does not answer, as `on_store_failure` says, and after it is back.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "tests/cluster/cluster.h"
#include "tests/cluster/judges.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

// Twice etcd's timeout, which is a second here, and what a busy machine adds.
const Span answered_within = sanitized ? 8s : 3s;

Span since(Instant then) {
  return std::chrono::duration_cast<Span>(std::chrono::steady_clock::now() - then);
}

void expect_store_unavailable(const Answer& answer) {
  expect_problem(answer, 503, "store_unavailable");
  EXPECT_GE(std::stoi("0" + answer.fields.get("Retry-After")), 1);
}

TEST(ClusterStoreAway, AReplicaStartsWithoutEtcdAndIsReadyOnceEtcdIs) {
  Cluster cluster({.begin = EtcdCluster::Begin::not_started, .replicas = 1});
  for (int i = 0; i < 2; ++i) {
    const Instant asked = std::chrono::steady_clock::now();
    expect_store_unavailable(get(cluster[0].port(), "/foo"));
    EXPECT_LE(since(asked), answered_within);
  }
  EXPECT_NE(not_ready(cluster[0]).find("store_unavailable"), std::string::npos);
  EXPECT_EQ(cluster[0].admin("/livez").status, 200);
  EXPECT_EQ(cluster[0].metric("weir_store_up"), 0);
  EXPECT_EQ(cluster.upstream.count(), 0u);
  cluster.etcd.start();
  eventually("ready", [&] { return not_ready(cluster[0]).empty(); }, 10s);
  eventually("served", [&] { return get(cluster[0].port(), "/foo").status == 200; }, 5s);
  EXPECT_EQ(cluster[0].metric("weir_store_up"), 1);
}

TEST(ClusterStoreAway, RejectSpendsUnitsInHandAndAnswers503WhenThereAreNone) {
  Cluster cluster({.default_rule = "{limit: 1000, window: 24h}", .replicas = 1});
  // Steady use, so that units are claimed ahead.
  Load load(cluster.doors, {{.path = "/foo", .clients = 2, .doors = {0}, .pause = 5ms}});
  const auto claimed = [&] {
    int units = 0;
    for (const SeenClaim& claim : cluster.claims()) units += claim.units;
    return units;
  };
  eventually("used for a while", [&] { return cluster.upstream.count() >= 100; });
  load.stop();
  int before = -1;
  eventually("claims have settled", [&] { return std::exchange(before, claimed()) == before; });
  ASSERT_GT(before, static_cast<int>(cluster.upstream.count())) << "nothing was claimed ahead";

  cluster.etcd.freeze(0);
  const auto in_hand = static_cast<std::size_t>(before) - cluster.upstream.count();
  for (std::size_t i = 0; i < in_hand; ++i) {
    EXPECT_EQ(get(cluster[0].port(), "/foo").status, 200) << i << " of " << in_hand;
  }
  for (const char* path : {"/foo", "/foo", "/bar"}) {
    const Instant asked = std::chrono::steady_clock::now();
    expect_store_unavailable(get(cluster[0].port(), path));
    EXPECT_LE(since(asked), answered_within);
  }
  EXPECT_EQ(cluster.upstream.count(), static_cast<std::size_t>(before));
  EXPECT_NE(not_ready(cluster[0]).find("store_unavailable"), std::string::npos);
  EXPECT_EQ(cluster[0].metric("weir_store_up"), 0);
  const double degraded = cluster[0].metric("weir_degraded_seconds_total");
  eventually("degraded for longer and longer",
             [&] { return cluster[0].metric("weir_degraded_seconds_total") >= degraded + 0.5; });

  cluster.etcd.thaw(0);
  eventually("ready", [&] { return not_ready(cluster[0]).empty(); }, 10s);
  // Each resource hears of it with its own next answer.
  for (const char* path : {"/foo", "/bar"}) {
    eventually("served", [&] { return get(cluster[0].port(), path).status == 200; }, 2s);
  }
  EXPECT_EQ(cluster[0].metric("weir_store_up"), 1);
  // Nothing was forgotten and nothing came twice.
  EXPECT_GE(claimed(), static_cast<int>(cluster.upstream.count()));
}

TEST(ClusterStoreAway, ShareGoesOnWithLimitByLiveReplicasFromTheNextWindow) {
  Cluster cluster({.default_rule = "{limit: 100, window: 3s}", .on_store_failure = "share"});
  Load load(cluster.doors, {{.path = "/foo", .clients = 16}});
  eventually("a window is used up", [&] { return cluster.upstream.count() >= 100; });
  wait_for_window(3s, 1500ms);  // in the middle of one
  cluster.etcd.freeze(0);
  std::vector<std::string> unready;
  const Instant frozen = std::chrono::steady_clock::now();
  while (since(frozen) < 18s) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (const std::string why = not_ready(cluster[i]); !why.empty()) unready.push_back(why);
    }
    let_run(100ms);
  }
  EXPECT_EQ(unready, std::vector<std::string>{});
  EXPECT_EQ(cluster[0].metric("weir_store_up"), 0);
  EXPECT_GT(cluster[0].metric("weir_degraded_seconds_total"), 1);
  cluster.etcd.thaw(0);
  const Instant thawed = std::chrono::steady_clock::now();

  // In whole windows without etcd each has its share; seven seconds are taken for noticing, by all.
  const auto alone = between(cluster.upstream.arrivals("/foo"), frozen + 3s, thawed);
  std::map<long, std::vector<Arrival>> windows;
  for (const Arrival& arrival : alone) {
    windows[arrival.wall.time_since_epoch() / 3s].push_back(arrival);
  }
  const std::map<std::string, int> share{{"r1", 34}, {"r2", 33}, {"r3", 33}};
  int whole = 0;
  for (const auto& [window, arrivals] : windows) whole += by_replica(arrivals) == share;
  EXPECT_GE(whole, 2) << "of " << windows.size() << " windows";

  for (std::size_t i = 0; i < 3; ++i) {
    eventually("etcd is used again", [&] { return cluster[i].metric("weir_store_up") == 1; }, 10s);
  }
  const long from = window_of(thawed, 3s), to = window_of(std::chrono::steady_clock::now(), 3s);
  wait_for_window(3s);
  const long next = window_of(std::chrono::steady_clock::now(), 3s);
  let_run(6s - on_its_way);
  load.stop();
  auto arrivals = cluster.upstream.arrivals("/foo");
  // Not judged, and a gap: in a window that begins when some have etcd back and others have not,
  // those claim all of it and these take their shares besides.
  std::erase_if(arrivals, [&](const Arrival& arrival) {
    const long window = arrival.wall.time_since_epoch() / 3s;
    return window > from && window <= to;
  });
  expect_started_kept(arrivals, 100, 3s);
  WindowCounts counts = by_window(arrivals, 100, 3s);
  EXPECT_GE(counts[next + 1], 99);
  std::size_t in_etcd = 0;
  for (const SeenClaim& claim : cluster.claims()) {
    std::tm utc{};
    ::strptime(claim.window.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    in_etcd += ::timegm(&utc) / 3 == next + 1;
  }
  EXPECT_EQ(in_etcd, 100u) << "claimed through etcd again";
}

TEST(ClusterStoreAway, AllowLetsEverythingPassAndStaysReady) {
  Cluster cluster({.default_rule = "{limit: 5, window: 24h, wait: 0s}",
                   .on_store_failure = "allow",
                   .replicas = 1});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(get(cluster[0].port(), "/foo").status, 200);
  expect_problem(get(cluster[0].port(), "/foo"), 429, "limit");
  cluster.etcd.freeze(0);
  cluster[0].wait_for_metric("weir_degraded_seconds_total", {}, 0.01);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(get(cluster[0].port(), "/foo").status, 200);
    EXPECT_EQ(get(cluster[0].port(), "/bar").status, 200);
    EXPECT_EQ(not_ready(cluster[0]), "");
  }
  EXPECT_EQ(cluster.upstream.count("/foo"), 25u);
  cluster.etcd.thaw(0);
  eventually(
      "the limit holds again", [&] { return get(cluster[0].port(), "/foo").status == 429; }, 10s);
}

TEST(ClusterStoreAway, MemoryAndConnectionsStayFlatHoweverLongAndOnHoweverManyPaths) {
  Cluster cluster({.replicas = 1, .rest = "max_resources: 2000\n"});
  Load load(
      cluster.doors,
      {{.path = "/many", .clients = sanitized ? 8 : 60, .doors = {0}, .distinct_paths = 20000}});
  eventually("served", [&] { return cluster.upstream.count() >= 100; });
  cluster.etcd.freeze(0);
  eventually("turned away", [&] { return load.count(503) > 100; });
  let_run(4s);
  const long memory = cluster[0].resident_kib();
  const int files = cluster[0].open_files();
  long most_memory = memory;
  int most_files = files;
  const auto watch_for = [&](Span span) {
    const Instant began = std::chrono::steady_clock::now();
    while (since(began) < span) {
      most_memory = std::max(most_memory, cluster[0].resident_kib());
      most_files = std::max(most_files, cluster[0].open_files());
      let_run(100ms);
    }
  };
  watch_for(10s);
  cluster.etcd.kill(0);  // from silent to refusing
  watch_for(10s);
  std::cout << "memory " << memory << " KiB, at most " << most_memory << "; files " << files
            << ", at most " << most_files << "; " << load.count(503) << " turned away\n";
  if (!sanitized) {
    EXPECT_LE(most_memory, memory + 8 * 1024);
  }
  EXPECT_LE(most_files, files + 20);
  for (const Answered& answer : load.answers()) {
    EXPECT_LE(answer.at - answer.asked, answered_within) << answer.status;
  }
  const Instant back = std::chrono::steady_clock::now();
  cluster.etcd.start();
  eventually("served again", [&] { return load.count(200, back) > 100; }, 10s);
}

}  // namespace
}  // namespace weir::test
