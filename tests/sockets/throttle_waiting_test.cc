// Throttles that let requests wait: who goes when, for how long, and what is held meanwhile.

#include <signal.h>

#include <algorithm>

#include "tests/sockets/throttled.h"

namespace weir::test {
namespace {

using std::chrono::steady_clock;

// Always 20 a second, and at most two in store.
std::string twenty(const std::string& kind) {
  return "throttle: {kind: " + kind +
         ", initial_rate: 20, floor: 20, ceiling: 20, burst: 1ms, on_limit: wait}";
}

using ThrottleWaiting = Throttled;

TEST_F(ThrottleWaiting, MayWaitInsteadUntilThereIsAToken) {
  WeirdProcess weird(config(twenty("sfq")));
  std::vector<RawClient> clients;
  for (int i = 0; i < 12; ++i) clients.push_back(client(weird, "/200"));
  for (RawClient& one : clients) EXPECT_EQ(one.read_answer().status, 200);
  const auto requests = upstream_.requests();
  ASSERT_EQ(requests.size(), 12u);
  EXPECT_GE(requests[11].arrived - requests[0].arrived, 475ms) << "two, and ten in half a second";
  EXPECT_LT(requests[11].arrived - requests[0].arrived, sanitized ? 5s : 1s);
  EXPECT_GE(denials(weird), 9);
  EXPECT_EQ(weird.metric("weir_requests_total", {{"outcome", "throttled"}}), 0);
}

TEST_F(ThrottleWaiting, ThoseWhoWaitGoOneAfterAnotherFromEachTenant) {
  WeirdProcess weird(config(twenty("aimd")));
  for (int i = 0; i < 2; ++i) ask(weird, "/200");  // what was in store
  std::vector<RawClient> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(client(weird, "/201", "many"));
  wait_for_line(weird, 10);  // some may have gone
  clients.push_back(client(weird, "/202", "few"));
  for (RawClient& one : clients) EXPECT_LT(one.read_answer().status, 300);
  const auto targets = upstream_.targets();
  const auto few = std::find(targets.begin(), targets.end(), "/202") - targets.begin();
  EXPECT_LE(few, 15) << "behind those who had gone, and a few more";
}

TEST_F(ThrottleWaiting, WaitingEndsIn503WhenTheRuleAllowsNoMore) {
  WeirdProcess weird(config(tokens(2, kWait), "{limit: 100, wait: 300ms}"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask(weird, "/200").status, 200);
  const Instant asked = steady_clock::now();
  const Answer got = ask(weird, "/200");
  expect_problem(got, 503, "throttled");
  EXPECT_GE(steady_clock::now() - asked, 300ms);
  EXPECT_GE(std::stoi(got.fields.get("Weir-Waited-Ms")), 300);
  EXPECT_EQ(upstream_.requests().size(), 2u);
}

TEST_F(ThrottleWaiting, WhereNobodyMayWaitTheAnswerIsGivenAtOnce) {
  WeirdProcess weird(config(tokens(2, kWait), "{limit: 100, wait: 0s}"));
  EXPECT_EQ(served(weird, 5), 2);
}

TEST_F(ThrottleWaiting, WhoWaitsHoldsNoUnit) {
  WeirdProcess weird(
      config("throttle: {kind: sfq, buckets: 65536, initial_rate: 0.001, floor: 0.0001, ceiling: "
             "0.001, burst: 1ms, "
             "on_limit: wait}",
             "{resource: all, limit: 1, mode: in_flight, wait: 10s}"));
  EXPECT_EQ(served(weird, 2, "a"), 2);
  RawClient waiting = client(weird, "/200", "a");
  wait_for_line(weird, 1);
  EXPECT_EQ(ask(weird, "/200", "b").status, 200);
  EXPECT_EQ(weird.metric("weir_waiting"), 1);
}

TEST_F(ThrottleWaiting, WhoeverWaitsForNothingMeetsItsOwnBucketAloneWhileAnotherTenantWaits) {
  Config config = this->config(
      "throttle: {kind: sfq, buckets: 65536, initial_rate: 0.001, floor: 0.0001, ceiling: 0.001, "
      "burst: 1ms, on_limit: wait}" +
      kRetrying);
  config.rest += "\nrules: [{name: at_once, match: {path: /201}, limit: 1000, wait: 0s}]";
  WeirdProcess weird(config);
  EXPECT_EQ(served(weird, 2, "a"), 2);
  RawClient waiting = client(weird, "/200", "a");
  wait_for_line(weird, 1);
  EXPECT_EQ(ask(weird, "/201", "b").status, 201);
  EXPECT_EQ(ask(weird, "/503", "c").body, "from the upstream");
  EXPECT_EQ(upstream_.targets(), (std::vector<std::string>{"/200", "/200", "/201", "/503", "/503"}))
      << "with a retry, which took the second token";
  const Answer denied = ask(weird, "/201", "a");
  expect_problem(denied, 503, "throttled");
  EXPECT_GT(std::stoi(denied.fields.get("Retry-After")), 900) << "a token in a quarter of an hour";
}

TEST_F(ThrottleWaiting, WhoHasWaitedTakesAUnitAsAllOthersDo) {
  WeirdProcess weird(config(twenty("aimd"), "{resource: all, limit: 4, window: 24h, wait: 2s}"));
  std::vector<RawClient> clients;
  for (int i = 0; i < 6; ++i) clients.push_back(client(weird, "/200"));
  std::map<int, int> statuses;
  for (RawClient& one : clients) ++statuses[one.read_answer().status];
  EXPECT_EQ(statuses, (std::map<int, int>{{200, 4}, {429, 2}}));
  expect_none_dropped(weird);
  EXPECT_EQ(upstream_.requests().size(), 4u);
}

TEST_F(ThrottleWaiting, WhoLeavesTheLineIsGoneAndNothingIsSentForHim) {
  WeirdProcess weird(config(tokens(2, kWait)));
  EXPECT_EQ(served(weird, 2), 2);
  RawClient leaving = client(weird, "/201");
  wait_for_line(weird, 1);
  leaving.close();
  wait_for_line(weird, 0);
  weird.wait_for_metric("weir_requests_total", {{"outcome", "client_gone"}}, 1);
  expect_none_dropped(weird);
  EXPECT_EQ(upstream_.requests().size(), 2u);
}

TEST_F(ThrottleWaiting, ADrainAnswersThoseWhoWaitAlsoBehindAReload) {
  WeirdProcess weird(config(tokens(2, kWait)));
  EXPECT_EQ(served(weird, 2), 2);
  RawClient first = client(weird, "/200");
  wait_for_line(weird, 1);
  weird.write_config(config(tokens(3, kWait)));
  weird.wait_for_metric("weir_config_reloads_total", {{"result", "ok"}}, 1);
  EXPECT_EQ(served(weird, 3), 3);
  RawClient second = client(weird, "/200");
  wait_for_line(weird, 2);
  weird.signal(SIGTERM);
  expect_problem(first.read_answer(), 503, "draining");
  expect_problem(second.read_answer(), 503, "draining");
  EXPECT_EQ(weird.wait_for_exit()->code, 0);
}

TEST_F(ThrottleWaiting, MoreThanMayWaitGet503) {
  Config few = config(tokens(2, kWait));
  few.rest += "\nmax_waiting: 1";
  WeirdProcess weird(few);
  EXPECT_EQ(served(weird, 2), 2);
  RawClient waiting = client(weird, "/200");
  wait_for_line(weird, 1);
  expect_problem(ask(weird, "/200"), 503, "queue_full");
}

TEST_F(ThrottleWaiting, ARetryDoesNotWait) {
  WeirdProcess weird(config(tokens(2, kWait) + kRetrying));
  EXPECT_EQ(ask(weird, "/503").body, "from the upstream");
  EXPECT_EQ(upstream_.requests().size(), 2u);
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "throttle"}}), 1);
}

}  // namespace
}  // namespace weir::test
