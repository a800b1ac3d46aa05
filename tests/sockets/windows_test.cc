// So many requests per window and resource, and not one more: the upstream's record is the judge.
// R-n are the cases of the specification.

#include "tests/support/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/answers.h"

namespace weir::test {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using Counts = std::vector<int>;

Counts counts_of(const std::map<long, int>& by_window) {
  Counts counts;
  for (const auto& [window, count] : by_window) counts.push_back(count);
  return counts;
}

class Windows : public testing::Test {
 protected:
  FakeUpstream upstream_{serve(answer(200, "ok"))};
};

TEST_F(Windows, R1_TheFourthOfThreeWaitsForTheNextWindowThenTwoMorePassAtOnce) {
  WeirdProcess weird(
      {.servers = {upstream_.url()}, .default_rule = "{limit: 3, window: 2s, wait: forever}"});
  RawClient client(weird.port());
  wait_for_window(2s);
  const auto start = steady_clock::now();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(client.get("/").status, 200);
  EXPECT_LT(steady_clock::now() - start, 4s);
  const auto by_window = arrivals_by_window(upstream_, "/", 2s);
  EXPECT_EQ(counts_of(by_window), (Counts{3, 3}));
  EXPECT_EQ(by_window.rbegin()->first - by_window.begin()->first, 1);
}

TEST_F(Windows, R2_EachPathGetsItsLimitInEachWindowInOrder) {
  WeirdProcess weird({.servers = {upstream_.url()}, .default_rule = "{limit: 10, window: 2s}"});
  std::vector<RawClient> clients;
  wait_for_window(2s);
  for (const std::string path : {"/a", "/b", "/c"}) {
    for (int i = 0; i < 10; ++i) clients.push_back(asking(weird, path + "?" + std::to_string(i)));
  }
  upstream_.wait_for_requests(30);
  std::vector<std::string> later;
  for (const std::string path : {"/a", "/b", "/c"}) {
    for (int i = 10; i < 30; ++i) later.push_back(path + "?" + std::to_string(i));
  }
  auto waiting = lined_up(weird, later);
  const auto requests = upstream_.wait_for_requests(90);
  for (const std::string path : {"/a", "/b", "/c"}) {
    std::map<long, int> by_window;
    long last = 0;
    for (int i = 0; i < 30; ++i) {
      const auto found = std::find_if(requests.begin(), requests.end(), [&](const Received& r) {
        return r.target == path + "?" + std::to_string(i);
      });
      ASSERT_NE(found, requests.end());
      const long window = window_of(found->arrived, 2s);
      EXPECT_GE(window, last) << path << " " << i << " was overtaken";
      last = window;
      ++by_window[window];
    }
    EXPECT_EQ(counts_of(by_window), (Counts{10, 10, 10})) << path;
  }
}

TEST_F(Windows, R3_TwoFullWindowsMayLieCloseTogether) {
  WeirdProcess weird({.servers = {upstream_.url()}, .default_rule = "{limit: 10, window: 4s}"});
  std::vector<RawClient> clients;
  wait_for_window(4s, 400ms);
  for (int i = 0; i < 10; ++i) clients.push_back(asking(weird, "/"));
  upstream_.wait_for_requests(10);
  wait_for_window(4s);
  for (int i = 0; i < 10; ++i) clients.push_back(asking(weird, "/"));
  const auto requests = upstream_.wait_for_requests(20);
  EXPECT_EQ(counts_of(arrivals_by_window(upstream_, "/", 4s)), (Counts{10, 10}));
  EXPECT_LT(requests.back().arrived - requests.front().arrived, 4s);
}

TEST_F(Windows, R4_AWindowThatIsUsedUpStaysSoToItsEnd) {
  WeirdProcess weird({.servers = {upstream_.url()}, .default_rule = "{limit: 5, window: 3s}"});
  RawClient client(weird.port());
  wait_for_window(3s);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.get("/").status, 200);
  auto one_more = lined_up(weird, {"/"});
  EXPECT_TRUE(one_more[0].quiet_for(1500ms));
  EXPECT_EQ(one_more[0].read_answer().status, 200);
  EXPECT_EQ(counts_of(arrivals_by_window(upstream_, "/", 3s)), (Counts{5, 1}));
}

TEST_F(Windows, R6_R7_WaitingForAWindowIsNoOverhead) {
  WeirdProcess weird({.servers = {upstream_.url()}, .default_rule = "{limit: 10, window: 2s}"});
  wait_for_window(2s);
  std::vector<RawClient> clients;
  for (int i = 0; i < 25; ++i) clients.push_back(asking(weird, "/"));
  upstream_.wait_for_requests(25);
  EXPECT_EQ(counts_of(arrivals_by_window(upstream_, "/", 2s)), (Counts{10, 10, 5}));
  weird.wait_for_metric("weir_admission_overhead_seconds_count", {}, 25);
  EXPECT_LT(weird.metric("weir_admission_overhead_seconds_sum"), sanitized ? 12.5 : 5.0);
  EXPECT_EQ(weird.metric("weir_wait_seconds_count") -
                weird.metric("weir_wait_seconds_bucket", {{"le", "0.5"}}),
            15);
  // Ten waited for about two seconds, five for about four.
  EXPECT_NEAR(weird.metric("weir_wait_seconds_sum"), 40, sanitized ? 20 : 8);
}

TEST_F(Windows, R8_WhoLeavesTheLineIsNotServedAndTheOthersAre) {
  WeirdProcess weird({.servers = {upstream_.url()}, .default_rule = "{limit: 40, window: 4s}"});
  wait_for_window(4s);
  std::vector<RawClient> clients;
  for (int i = 0; i < 40; ++i) clients.push_back(asking(weird, "/"));
  upstream_.wait_for_requests(40);
  std::vector<RawClient> staying, leaving;
  for (int i = 0; i < 50; ++i) {
    (i % 5 == 0 ? leaving : staying).push_back(asking(weird, i % 5 == 0 ? "/?leaves" : "/"));
  }
  wait_for_line(weird, 50);
  leaving.clear();
  wait_for_line(weird, 40);
  for (RawClient& client : staying) EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(counts_of(arrivals_by_window(upstream_, "", 4s)), (Counts{40, 40}));
  EXPECT_TRUE(arrivals_by_window(upstream_, "/?leaves").empty());
  weird.wait_for_metric("weir_requests_total", {{"outcome", "client_gone"}}, 10);
  EXPECT_EQ(weird.metric("weir_units_total", {{"rule", "default"}, {"event", "spent"}}), 80);
}

TEST_F(Windows, R11_PathsThatBeginAlikeAreResourcesOfTheirOwn) {
  WeirdProcess weird(
      {.servers = {upstream_.url()}, .default_rule = "{limit: 1, window: 24h, wait: 0s}"});
  RawClient client(weird.port());
  for (const char* path : {"/foo", "/foobar", "/foo/bar", "/foo/2019-05-03T10:00:00", "/foo@bar"}) {
    EXPECT_EQ(client.get(path).status, 200) << path;
    EXPECT_EQ(client.get(path).status, 429) << path;
  }
  for (const char* same : {"//foo", "/./foo", "/%66oo", "/foo?query", "/bar/../foo"}) {
    EXPECT_EQ(client.get(same).status, 429) << same;
  }
}

TEST_F(Windows, R13_AReplicaEnforcesItsShare) {
  const std::vector<int> shares{34, 33, 33};
  for (int index = 0; index < 3; ++index) {
    WeirdProcess weird(
        {.servers = {upstream_.url()},
         .rest = "coordination: {replicas: 3, replica_index: " + std::to_string(index) + "}",
         .default_rule = "{limit: 100, window: 24h, wait: 0s}"});
    RawClient client(weird.port());
    int passed = 0;
    for (int i = 0; i < 40; ++i) {
      const Answer answer = client.get("/");
      if (answer.status == 200) ++passed;
      EXPECT_EQ(answer.fields.get("RateLimit-Policy"), "\"default\";q=100;w=86400");
    }
    EXPECT_EQ(passed, shares[static_cast<std::size_t>(index)]);
  }
}

TEST_F(Windows, EveryWorkerCountsForTheSameLimit) {
  WeirdProcess weird({.servers = {upstream_.url()},
                      .workers = 4,
                      .default_rule = "{limit: 20, window: 24h, wait: 0s}"});
  std::vector<RawClient> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(asking(weird, "/"));
  int passed = 0;
  for (RawClient& client : clients) passed += client.read_answer().status == 200;
  EXPECT_EQ(passed, 20);
  EXPECT_EQ(upstream_.requests().size(), 20u);
}

TEST_F(Windows, ALimitOfThousandsIsExactToo) {
  WeirdProcess weird(
      {.servers = {upstream_.url()}, .default_rule = "{limit: 1000, window: 24h, wait: 0s}"});
  RawClient client(weird.port());
  int passed = 0;
  for (int i = 0; i < 1100; ++i) passed += client.get("/").status == 200;
  EXPECT_EQ(passed, 1000);
}

TEST_F(Windows, BeyondMaxResourcesNewNamesShareOneLimit) {
  WeirdProcess weird({.servers = {upstream_.url()},
                      .rest = "max_resources: 2",
                      .default_rule = "{limit: 1, window: 24h, wait: 0s}"});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").status, 200);
  EXPECT_EQ(client.get("/2").status, 200);
  EXPECT_EQ(client.get("/3").status, 200) << "the overflow's own";
  for (int i = 4; i < 20; ++i) EXPECT_EQ(client.get("/" + std::to_string(i)).status, 429);
  EXPECT_EQ(client.get("/1").status, 429) << "a resource in use is not forgotten";
  EXPECT_GE(weird.metric("weir_overflow_total"), 17);
  EXPECT_LE(weird.metric("weir_resources"), 3);
}

}  // namespace
}  // namespace weir::test
