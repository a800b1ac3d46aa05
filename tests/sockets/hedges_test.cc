// Hedged calls as the upstream and the client see them: when attempts are sent and to whom, whose
// answer is passed on, and that the others end on the wire.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

constexpr const char* kHeader = "grpc-previous-rpc-attempts";

std::string hedging(int attempts, const std::string& delay, const std::string& method = "",
                    const std::string& config = "") {
  return "service_config: {methodConfig: [{name: [{}], " + method +
         " hedgingPolicy: {maxAttempts: " + std::to_string(attempts) + ", hedgingDelay: " + delay +
         ", nonFatalStatusCodes: [UNAVAILABLE]}}]" + config + "}";
}

Span between(const FakeUpstream& upstream, std::size_t first) {
  const auto requests = upstream.requests();
  return std::chrono::duration_cast<Span>(requests.at(first + 1).arrived -
                                          requests.at(first).arrived);
}

TEST(Hedges, TheFirstGoodAnswerWinsAndTheOthersAreClosedAtOnce) {
  FakeUpstream upstream(
      in_turn({send_and_stall(""), send_and_stall(""), serve(answer(200, "third"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = hedging(4, "0.2s")});
  const Instant asked = std::chrono::steady_clock::now();
  const Answer got = get(weird.port(), "/x");
  EXPECT_EQ(got.body, "third");
  EXPECT_EQ(got.fields.get(kHeader), "2");
  upstream.wait_for_closing(1);
  upstream.wait_for_closing(2);
  const auto requests = upstream.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].fields.get(kHeader), "");
  EXPECT_EQ(requests[1].fields.get(kHeader), "1");
  EXPECT_EQ(requests[2].fields.get(kHeader), "2");
  // An arrival may be noticed late, so the time between two of them may be anything above 0.
  EXPECT_GE(requests[1].arrived - asked, 200ms);
  EXPECT_GE(requests[2].arrived - asked, 400ms);
  EXPECT_LT(requests[2].arrived - asked, 1000ms);
  EXPECT_EQ(weird.metric("weir_attempts_total", {{"kind", "first"}}), 1);
  EXPECT_EQ(weird.metric("weir_attempts_total", {{"kind", "hedge"}}), 2);
  weird.wait_for_metric("weir_retries_per_request_sum", {}, 2);  // behind the answer
}

TEST(Hedges, AQuickAnswerNeedsNone) {
  FakeUpstream upstream(serve(answer(200, "quick")));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = hedging(4, "5s")});
  RawClient client(weird.port());
  for (int i = 0; i < 3; ++i) {
    const Answer got = client.get("/x");
    EXPECT_EQ(got.body, "quick");
    EXPECT_FALSE(got.fields.has(kHeader));
  }
  EXPECT_EQ(upstream.requests().size(), 3U);
  EXPECT_EQ(upstream.connections(), 1) << "the winner's connection is kept";
}

TEST(Hedges, WithoutADelayAllAreSentAtOnceEachToAnotherServer) {
  FakeUpstream one(send_and_stall("")), two(send_and_stall("")), three(send_and_stall(""));
  WeirdProcess weird(
      {.servers = {one.url(), two.url(), three.url()}, .upstream = hedging(3, "0s")});
  RawClient client = asking(weird, "/x");
  for (FakeUpstream* upstream : {&one, &two, &three}) {
    EXPECT_EQ(upstream->wait_for_requests(1).size(), 1U);
  }
  client.close();
  for (FakeUpstream* upstream : {&one, &two, &three}) upstream->wait_for_closing(1);
}

TEST(Hedges, ANonFatalAnswerSendsTheNextAtOnce) {
  FakeUpstream upstream(in_turn({send_and_close(answer(503, "no")), serve(answer(200, "yes"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = hedging(3, "5s")});
  EXPECT_EQ(get(weird.port(), "/x").body, "yes");
  EXPECT_LT(between(upstream, 0), 1000ms);
}

TEST(Hedges, AnAttemptThatTakesTooLongSendsTheNextAtOnce) {
  FakeUpstream upstream(in_turn({send_and_stall(""), serve(answer(200, "quick"))}));
  std::string fields = hedging(2, "20s");
  fields.insert(fields.find("hedgingDelay"), "perAttemptRecvTimeout: 0.3s, ");
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = fields});
  const Instant asked = std::chrono::steady_clock::now();
  EXPECT_EQ(get(weird.port(), "/x").body, "quick");
  EXPECT_GE(upstream.requests().at(1).arrived - asked, 300ms);
  upstream.wait_for_closing(1);
}

TEST(Hedges, AFatalAnswerIsPassedOnAndCancelsTheOthers) {
  FakeUpstream upstream(in_turn({send_and_stall(""), serve(answer(500, "fatal"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = hedging(4, "0.1s")});
  const Answer got = get(weird.port(), "/x");
  EXPECT_EQ(got.status, 500);
  EXPECT_EQ(got.body, "fatal");
  upstream.wait_for_closing(1);
  EXPECT_EQ(upstream.requests().size(), 2U);
}

TEST(Hedges, WhenAllFailTheLastAnswerIsPassedOn) {
  FakeUpstream upstream(serve(answer(503, "busy")));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = hedging(3, "0.05s")});
  const Answer got = get(weird.port(), "/x");
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.body, "busy");
  EXPECT_EQ(got.fields.get(kHeader), "2");
  EXPECT_EQ(upstream.requests().size(), 3U);
}

TEST(Hedges, APushbackThatForbidsMoreWaitsForThoseUnderWay) {
  Gate go;
  FakeUpstream upstream(in_turn({after_request([&](UpstreamConnection& connection) {
                                   connection.wait(go);
                                   connection.send(answer(200, "late"));
                                 }),
                                 after_request([&](UpstreamConnection& connection) {
                                   connection.send(answer(503, "", {"grpc-retry-pushback-ms: -1"}));
                                   go.open();
                                 })}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = hedging(4, "0.1s")});
  EXPECT_EQ(get(weird.port(), "/x").body, "late");
  EXPECT_EQ(upstream.requests().size(), 2U);
}

TEST(Hedges, ACallThatTheThrottleStopsEndsAtOnce) {
  FakeUpstream upstream(serve(answer(503, "busy")));
  WeirdProcess weird(
      {.servers = {upstream.url()},
       .upstream = hedging(4, "5s", "", ", retryThrottling: {maxTokens: 4, tokenRatio: 0.8}")});
  EXPECT_EQ(get(weird.port(), "/x").status, 503);
  EXPECT_EQ(upstream.requests().size(), 2U);
}

TEST(Hedges, TheTimeoutCoversAllOfThem) {
  FakeUpstream upstream(send_and_stall(""));
  WeirdProcess weird(
      {.servers = {upstream.url()}, .upstream = hedging(3, "0.1s", "timeout: 0.4s,")});
  expect_problem(get(weird.port(), "/x"), 504, "deadline");
  for (int connection : {1, 2, 3}) upstream.wait_for_closing(connection);
}

TEST(Hedges, ABodyIsSentToEach) {
  const std::string body = payload(100'000);
  FakeUpstream upstream(in_turn({send_and_stall(""), serve(answer(200, "stored"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = hedging(2, "0.1s")});
  RawClient client(weird.port());
  client.send(lines({"PUT /x HTTP/1.1", "Host: a", "Content-Length: 100000"}) + body);
  EXPECT_EQ(client.read_answer("PUT").body, "stored");
  for (const Received& request : upstream.requests()) EXPECT_TRUE(request.body == body);
}

TEST(Hedges, ABodyThatIsStillComingIsSentToEachAsItComes) {
  const std::string body = payload(200'000);
  Gate both;
  std::atomic<int> complete = 0;
  FakeUpstream upstream(after_request([&](UpstreamConnection& connection) {
    if (++complete == 2) both.open();
    connection.wait(both);
    connection.send(answer(200, "stored"));
  }));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = hedging(2, "0.1s")});
  RawClient client(weird.port());
  client.send(lines({"PUT /x HTTP/1.1", "Host: a", "Transfer-Encoding: chunked"}));
  client.send(chunk(body.substr(0, 1000)));
  upstream.wait_for_requests(2);
  for (std::size_t at = 1000; at < body.size(); at += 19'900) {
    client.send(chunk(body.substr(at, 19'900)));
  }
  client.send(last_chunk);
  EXPECT_EQ(client.read_answer("PUT").body, "stored");
  for (const Received& request : upstream.requests()) {
    EXPECT_TRUE(request.body_complete) << request.body.size();
    EXPECT_TRUE(request.body == body) << request.body.size();
  }
}

TEST(Hedges, OneThatBeginsLateIsSentTheWholeBody) {
  const std::string body = payload(150'000);
  FakeUpstream upstream(in_turn({[](UpstreamConnection& connection) {
                                   connection.read_head();
                                   connection.send(answer(503, "no"));
                                   connection.wait_for_peer_to_leave();
                                 },
                                 serve(answer(200, "stored"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = hedging(2, "5s")});
  RawClient client(weird.port());
  client.send(lines({"PUT /x HTTP/1.1", "Host: a", "Content-Length: 150000"}) +
              body.substr(0, 100'000));
  upstream.wait_for_requests(2);
  client.send(body.substr(100'000));
  EXPECT_EQ(client.read_answer("PUT").body, "stored");
  EXPECT_TRUE(upstream.requests().at(1).body == body);
}

// More than is kept: one goes on, the one that has sent most, and the others are closed.
TEST(Hedges, BehindABodyTooLargeToKeepTheOneThatHasSentMostGoesOnAlone) {
  const std::string body = payload(4'000'000);
  constexpr int kSmallBuffer = 4096;
  Gate go, read_on;
  FakeUpstream idle(
      [&](UpstreamConnection& connection) {
        connection.read_head();
        connection.wait(read_on);
      },
      Start::listening, kSmallBuffer);
  FakeUpstream busy(after_request([&](UpstreamConnection& connection) {
    connection.wait(go);
    connection.send(answer(200, "stored"));
  }));
  WeirdProcess weird({.servers = {idle.url(), busy.url()}, .upstream = hedging(3, "0.3s")});
  RawClient client(weird.port());
  client.send(lines({"PUT /x HTTP/1.1", "Host: a", "Content-Length: 4000000"}) +
              body.substr(0, 1000));
  ASSERT_EQ(idle.wait_for_requests(1).size(), 1U);
  ASSERT_EQ(busy.wait_for_requests(1).size(), 1U);
  client.send(body.substr(1000));
  std::this_thread::sleep_for(500ms);  // longer than the delay of a third
  read_on.open();
  idle.wait_for_closing(1);
  go.open();
  const Answer got = client.read_answer("PUT");
  EXPECT_EQ(got.body, "stored");
  EXPECT_EQ(got.fields.get(kHeader), "1");
  EXPECT_TRUE(busy.requests().at(0).body == body);
  EXPECT_EQ(idle.requests().size() + busy.requests().size(), 2U);
  EXPECT_EQ(weird.metric("weir_attempts_total", {{"kind", "hedge"}}), 1);
}

TEST(Hedges, WithoutAUnitTheFailureStandsEvenIfItCameBeforeTheBodyWasSent) {
  FakeUpstream upstream([](UpstreamConnection& connection) {
    connection.read_head();
    connection.send(answer(503, "busy"));
    connection.wait_for_peer_to_leave();
  });
  WeirdProcess weird({.servers = {upstream.url()},
                      .upstream = hedging(3, "5s"),
                      .default_rule = "{limit: 1, window: 1h}"});
  RawClient client(weird.port());
  client.send(lines({"PUT /x HTTP/1.1", "Host: a", "Content-Length: 1000"}) + payload(500));
  const Answer got = client.read_answer("PUT");
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.body, "busy");
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "unit"}}), 1);
  EXPECT_EQ(upstream.requests().size(), 1U);
}

TEST(Hedges, EachNeedsAUnitOfItsOwn) {
  FakeUpstream upstream(send_and_stall(""));
  WeirdProcess weird({.servers = {upstream.url()},
                      .upstream = hedging(4, "0.05s", "timeout: 0.5s,"),
                      .default_rule = "{limit: 2, mode: in_flight}"});
  expect_problem(get(weird.port(), "/x"), 504, "deadline");
  EXPECT_EQ(upstream.requests().size(), 2U);
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "unit"}}), 1);
  expect_problem(get(weird.port(), "/x"), 504, "deadline");
  EXPECT_EQ(upstream.requests().size(), 4U) << "both units came back";
}

TEST(Hedges, InAWindowNeverMoreAreSentThanTheLimitSays) {
  FakeUpstream upstream(serve(answer(503, "")));
  WeirdProcess weird({.servers = {upstream.url()},
                      .upstream = hedging(5, "0.001s") + "\nretry_budget: {percent: 100000}",
                      .default_rule = "{limit: 10, window: 2s, resource: all}"});
  wait_for_window(2s);
  std::vector<RawClient> clients;
  for (int i = 0; i < 14; ++i) clients.push_back(asking(weird, "/" + std::to_string(i)));
  for (RawClient& client : clients) EXPECT_EQ(client.read_answer().status, 503);
  const auto arrivals = arrivals_by_window(upstream, "", 2s);
  EXPECT_EQ(arrivals.begin()->second, 10);
  for (const auto& [window, count] : arrivals) EXPECT_LE(count, 10);
}

}  // namespace
}  // namespace weir::test
