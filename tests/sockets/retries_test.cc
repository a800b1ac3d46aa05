// Retries as the upstream and the client see them: which faults are mended, how often, how far
// apart, and what each attempt says of itself.

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

constexpr const char* kHeader = "grpc-previous-rpc-attempts";

// A policy for all paths; `more` are further fields of the upstream.
std::string retrying(int attempts, const std::string& backoff = "0.02s",
                     const std::string& policy = "", const std::string& method = "") {
  return "service_config: {methodConfig: [{name: [{}], " + method +
         " retryPolicy: {maxAttempts: " + std::to_string(attempts) +
         ", initialBackoff: " + backoff + ", maxBackoff: 1s, backoffMultiplier: 2, " + policy +
         " retryableStatusCodes: [UNAVAILABLE]}}]}";
}

std::vector<std::string> previous_attempts(const FakeUpstream& upstream) {
  std::vector<std::string> values;
  for (const Received& request : upstream.requests()) values.push_back(request.fields.get(kHeader));
  return values;
}

Span between(const FakeUpstream& upstream, std::size_t first) {
  const auto requests = upstream.requests();
  return std::chrono::duration_cast<Span>(requests.at(first + 1).arrived -
                                          requests.at(first).arrived);
}

using Values = std::vector<std::string>;

TEST(Retries, EachFaultBeforeTheHeadIsMended) {
  FakeUpstream upstream(in_turn({send_and_close(""), send_and_reset("HTTP/1.1 2"),
                                 send_and_close(answer(503, "no")), serve(answer(200, "yes"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(4)});
  const Answer got = get(weird.port(), "/x");
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, "yes");
  EXPECT_EQ(got.fields.get(kHeader), "3");
  EXPECT_EQ(previous_attempts(upstream), (Values{"", "1", "2", "3"}));
  EXPECT_EQ(weird.metric("weir_attempts_total", {{"kind", "first"}}), 1);
  EXPECT_EQ(weird.metric("weir_attempts_total", {{"kind", "retry"}}), 3);
  weird.wait_for_metric("weir_retries_per_request_count", {}, 1);  // behind the answer
  EXPECT_EQ(weird.metric("weir_retries_per_request_sum"), 3);
}

TEST(Retries, AttemptsEndWithThePolicysNumberAndTheLastFailureIsPassedOn) {
  FakeUpstream upstream(serve(answer(503, "the last", {"X-Mine: 1"})));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3)});
  const Answer got = get(weird.port(), "/x");
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.body, "the last");
  EXPECT_EQ(got.fields.get("X-Mine"), "1");
  EXPECT_EQ(got.fields.get(kHeader), "2");
  EXPECT_EQ(upstream.requests().size(), 3U);
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "attempts"}}), 1);
}

TEST(Retries, BackoffDoublesBetweenAttempts) {
  FakeUpstream upstream(serve(answer(503, "")));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3, "0.2s")});
  get(weird.port(), "/x");
  ASSERT_EQ(upstream.requests().size(), 3U);
  EXPECT_GE(between(upstream, 0), 160ms);
  EXPECT_LT(between(upstream, 0), 360ms);
  EXPECT_GE(between(upstream, 1), 320ms);
  EXPECT_LT(between(upstream, 1), 640ms);
}

TEST(Retries, APushbackIsWaitedForExactly) {
  FakeUpstream upstream(
      in_turn({send_and_close(answer(503, "", {"grpc-retry-pushback-ms: 300"})),
               send_and_close(answer(503, "", {"Retry-After: 1"})), serve(answer(200, "ok"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3, "0.01s")});
  EXPECT_EQ(get(weird.port(), "/x").status, 200);
  EXPECT_GE(between(upstream, 0), 300ms);
  EXPECT_LT(between(upstream, 0), 500ms);
  EXPECT_GE(between(upstream, 1), 1000ms);
}

TEST(Retries, APushbackThatForbidsThemEndsThem) {
  FakeUpstream upstream(serve(answer(503, "", {"grpc-retry-pushback-ms: -1"})));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3)});
  EXPECT_EQ(get(weird.port(), "/x").status, 503);
  EXPECT_EQ(upstream.requests().size(), 1U);
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "pushback"}}), 1);
}

TEST(Retries, AServerThatRefusesIsTriedAgain) {
  FakeUpstream upstream(serve(answer(200, "up")), Start::refusing);
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(5, "0.1s")});
  RawClient client = asking(weird, "/x");
  weird.wait_for_metric("weir_attempts_total", {{"kind", "retry"}}, 1);
  upstream.listen();
  const Answer got = client.read_answer();
  EXPECT_EQ(got.body, "up");
  EXPECT_EQ(got.fields.get(kHeader), previous_attempts(upstream).front());
  EXPECT_NE(got.fields.get(kHeader), "");
}

TEST(Retries, NothingIsRetriedBehindAHeadThatWasGood) {
  FakeUpstream upstream(send_and_reset("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3)});
  RawClient client(weird.port());
  const Answer got = client.get("/x");
  EXPECT_EQ(got.status, 200);
  EXPECT_FALSE(got.complete);
  EXPECT_EQ(upstream.requests().size(), 1U);
}

TEST(Retries, AnotherStatusIsPassedOnAtOnce) {
  FakeUpstream upstream(serve(answer(500, "mine")));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3)});
  EXPECT_EQ(get(weird.port(), "/x").body, "mine");
  EXPECT_EQ(upstream.requests().size(), 1U);
}

TEST(Retries, AnAttemptThatTakesTooLongIsRetriedInItsPlace) {
  FakeUpstream upstream(in_turn({send_and_stall(""), serve(answer(200, "quick"))}));
  WeirdProcess weird({.servers = {upstream.url()},
                      .upstream = retrying(2, "0.01s", "perAttemptRecvTimeout: 0.2s,")});
  const Instant asked = std::chrono::steady_clock::now();
  EXPECT_EQ(get(weird.port(), "/x").body, "quick");
  EXPECT_GE(upstream.requests().at(1).arrived - asked, 200ms);
  EXPECT_EQ(upstream.wait_for_closing(1).how, Ending::fin);
}

TEST(Retries, ASlowBodyIsNoReasonToRetry) {
  Gate go;
  FakeUpstream upstream(after_request([&](UpstreamConnection& connection) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    connection.wait(go);
    connection.send("cd");
  }));
  WeirdProcess weird(
      {.servers = {upstream.url()},
       .upstream = retrying(3, "0.01s", "perAttemptRecvTimeout: 0.1s,", "timeout: 0.2s,")});
  RawClient client = asking(weird, "/x");
  std::this_thread::sleep_for(500ms);  // longer than either timeout
  go.open();
  EXPECT_EQ(client.read_answer().body, "abcd");
  EXPECT_EQ(upstream.requests().size(), 1U);
}

TEST(Retries, TheTimeoutCoversAllAttemptsAndTheirBackoff) {
  FakeUpstream upstream(serve(answer(503, "")));
  WeirdProcess weird(
      {.servers = {upstream.url()}, .upstream = retrying(5, "0.9s", "", "timeout: 0.3s,")});
  const auto began = std::chrono::steady_clock::now();
  const Answer got = get(weird.port(), "/x");
  expect_problem(got, 504, "deadline");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 700ms);
  EXPECT_EQ(upstream.requests().size(), 1U);
  weird.wait_for_metric("weir_requests_total", {{"outcome", "deadline"}}, 1);
}

TEST(Retries, ATimeoutNeedsNoPolicy) {
  FakeUpstream upstream(send_and_stall(""));
  WeirdProcess weird({.servers = {upstream.url()},
                      .upstream = "service_config: {methodConfig: [{name: [{}], timeout: 0.2s}]}"});
  expect_problem(get(weird.port(), "/x"), 504, "deadline");
}

TEST(Retries, ABodyIsSentAgainAsItWas) {
  FakeUpstream upstream(
      in_turn({send_and_reset(""), send_and_close(answer(503, "")), serve(answer(200, "stored"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(4)});
  RawClient client(weird.port());
  const std::string body = payload(200'000);
  client.send(lines({"PUT /x HTTP/1.1", "Host: a", "Transfer-Encoding: chunked"}));
  for (std::size_t at = 0; at < body.size(); at += 50'000)
    client.send(chunk(body.substr(at, 50'000)));
  client.send(last_chunk);
  EXPECT_EQ(client.read_answer("PUT").body, "stored");
  for (const Received& request : upstream.wait_for_requests(3)) {
    EXPECT_TRUE(request.body == body) << request.body.size();
    EXPECT_TRUE(request.body_complete);
  }
}

TEST(Retries, ABodyThatWasHalfSentIsTakenUpWhereItWas) {
  const std::string body = payload(100'000);
  FakeUpstream upstream(in_turn({[](UpstreamConnection& connection) {
                                   connection.read_head();
                                   connection.reset();
                                 },
                                 serve(answer(200, "stored"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(2)});
  RawClient client(weird.port());
  client.send(lines({"PUT /x HTTP/1.1", "Host: a", "Content-Length: 100000"}) +
              body.substr(0, 1000));
  upstream.wait_for_requests(2);
  client.send(body.substr(1000));
  EXPECT_EQ(client.read_answer("PUT").body, "stored");
  EXPECT_TRUE(upstream.requests().at(1).body == body);
}

TEST(Retries, ABodyTooLargeToKeepIsSentOnce) {
  FakeUpstream upstream(serve(answer(503, "full")));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3)});
  RawClient client(weird.port());
  const std::string body = payload(300'000);
  client.send(lines({"PUT /x HTTP/1.1", "Host: a", "Content-Length: 300000"}) + body);
  EXPECT_EQ(client.read_answer("PUT").status, 503);
  EXPECT_EQ(upstream.requests().size(), 1U);
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "committed"}}), 1);
}

TEST(Retries, ABodyThatBecomesTooLargeDuringARetryMakesThatOneTheLast) {
  FakeUpstream upstream(in_turn({[](UpstreamConnection& connection) {
                                   connection.read_head();
                                   connection.reset();
                                 },
                                 serve(answer(503, "full"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(4)});
  RawClient client(weird.port());
  const std::string body = payload(300'000);
  client.send(lines({"PUT /x HTTP/1.1", "Host: a", "Content-Length: 300000"}) +
              body.substr(0, 1000));
  upstream.wait_for_requests(2);
  client.send(body.substr(1000));
  EXPECT_EQ(client.read_answer("PUT").body, "full");
  EXPECT_EQ(upstream.requests().size(), 2U);
  EXPECT_TRUE(upstream.requests().at(1).body == body);
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "committed"}}), 1);
}

TEST(Retries, WithoutAUnitTheFailureStandsEvenIfItCameBeforeTheBodyWasSent) {
  FakeUpstream upstream([](UpstreamConnection& connection) {
    connection.read_head();
    connection.send(answer(503, "busy", {"X-Mine: 1"}));
    connection.wait_for_peer_to_leave();
  });
  WeirdProcess weird({.servers = {upstream.url()},
                      .upstream = retrying(3),
                      .default_rule = "{limit: 1, window: 1h}"});
  RawClient client(weird.port());
  client.send(lines({"PUT /x HTTP/1.1", "Host: a", "Content-Length: 1000"}) + payload(500));
  const Answer got = client.read_answer("PUT");
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.body, "busy");
  EXPECT_EQ(got.fields.get("X-Mine"), "1");
  EXPECT_FALSE(got.fields.has(kHeader));
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "unit"}}), 1);
  EXPECT_EQ(upstream.requests().size(), 1U);
}

int attempts_of_post(const std::string& upstream_fields) {
  FakeUpstream upstream(serve(answer(503, "")));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = upstream_fields});
  RawClient client(weird.port());
  client.send(lines({"POST /orders/1 HTTP/1.1", "Host: a", "Content-Length: 2"}) + "ab");
  EXPECT_EQ(client.read_answer("POST").status, 503);
  return static_cast<int>(upstream.requests().size());
}

TEST(Retries, WhatMustNotBeServedTwiceIsRetriedOnlyWhereThePolicyNamesIt) {
  EXPECT_EQ(attempts_of_post(retrying(3)), 1);
  EXPECT_EQ(attempts_of_post(retrying(3) + "\nretry_non_idempotent: true"), 3);
  std::string named = retrying(3);
  named.replace(named.find("[{}]"), 4, "[{path: /orders/*}]");
  EXPECT_EQ(attempts_of_post(named), 3);
}

// Answers once, and leaves when it is asked again.
Script kept_in_vain() {
  return [](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.send(answer(200, "first"));
    if (connection.read_request()) connection.close();
  };
}

TEST(Retries, AConnectionThatIsReplacedCountsNeitherAsAnAttemptNorAgainstTheTokens) {
  FakeUpstream upstream(
      in_turn({kept_in_vain(), send_and_close(answer(503, "")), serve(answer(200, "third"))}));
  std::string fields = retrying(3);
  fields.insert(fields.rfind('}'), ", retryThrottling: {maxTokens: 3, tokenRatio: 0.1}");
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = fields});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").body, "first");
  const Answer got = client.get("/2");
  EXPECT_EQ(got.body, "third") << "3 - 1 is more than half, 3 - 2 would not be";
  EXPECT_EQ(got.fields.get(kHeader), "1");
  EXPECT_EQ(previous_attempts(upstream), (Values{"", "", "", "1"}));
  EXPECT_EQ(weird.metric("weir_attempts_total", {{"kind", "transparent"}}), 1);
  EXPECT_EQ(weird.metric("weir_attempts_total", {{"kind", "retry"}}), 1);
}

TEST(Retries, TurnedOffLostConnectionsAreReplacedAllTheSame) {
  FakeUpstream upstream(in_turn({kept_in_vain(), serve(answer(200, "second"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3) + "\nretries: false"});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").body, "first");
  EXPECT_EQ(client.get("/2").body, "second");
}

TEST(Retries, CanBeTurnedOff) {
  FakeUpstream upstream(serve(answer(503, "")));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3) + "\nretries: false"});
  EXPECT_EQ(get(weird.port(), "/x").status, 503);
  EXPECT_EQ(upstream.requests().size(), 1U);
}

TEST(Retries, NeedTokensOfTheThrottle) {
  FakeUpstream upstream(serve(answer(503, "")));
  std::string fields = retrying(5, "0.01s");
  fields.insert(fields.rfind('}'), ", retryThrottling: {maxTokens: 4, tokenRatio: 0.1}");
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = fields});
  EXPECT_EQ(get(weird.port(), "/x").status, 503);
  EXPECT_EQ(upstream.requests().size(), 2U) << "4 - 1 is more than half, 4 - 2 is not";
  EXPECT_EQ(get(weird.port(), "/x").status, 503);
  EXPECT_EQ(upstream.requests().size(), 3U);
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "throttle"}}), 2);
}

TEST(Retries, AreThrottledBehindAReloadAsBefore) {
  FakeUpstream upstream(serve(answer(503, "")));
  const auto config = [&](const std::string& tokens) {
    std::string fields = retrying(5, "0.01s");
    fields.insert(fields.rfind('}'),
                  ", retryThrottling: {maxTokens: " + tokens + ", tokenRatio: 0.1}");
    return Config{.servers = {upstream.url()}, .upstream = fields};
  };
  WeirdProcess weird(config("4"));
  EXPECT_EQ(get(weird.port(), "/x").status, 503);
  EXPECT_EQ(upstream.requests().size(), 2U) << "half of the tokens are gone";
  weird.write_config(config("100"));
  weird.wait_for_metric("weir_config_reloads_total", {{"result", "ok"}}, 1);
  EXPECT_EQ(get(weird.port(), "/x").status, 503);
  EXPECT_EQ(upstream.requests().size(), 3U) << "and half of the new ones";
}

TEST(Retries, TheCapOfAttemptsCanBeSet) {
  FakeUpstream upstream(serve(answer(503, "")));
  std::string fields = retrying(9, "0.01s");
  fields.insert(fields.find("methodConfig"), "maxAttemptsCap: 7, ");
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = fields});
  EXPECT_EQ(get(weird.port(), "/x").status, 503);
  EXPECT_EQ(upstream.requests().size(), 7U);
}

TEST(Retries, WithADynamicBucketGetTheirShareOfTheFirstTriesOfItsWindow) {
  FakeUpstream upstream(serve(answer(503, "")));
  WeirdProcess weird({.servers = {upstream.url()},
                      .upstream = retrying(3, "0.001s") +
                                  "\nretry_budget: {percent: 100000}"
                                  "\ndynamic_bucket: {enabled: true, window: 60s}"});
  RawClient client(weird.port());
  constexpr std::size_t kFirstTries = 40;  // fewer than the tokens that are there at first
  for (std::size_t i = 0; i < kFirstTries; ++i) EXPECT_EQ(client.get("/x").status, 503);
  EXPECT_EQ(upstream.requests().size(), kFirstTries + kFirstTries / 20);
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "budget"}}),
            static_cast<double>(kFirstTries));
}

TEST(Retries, AClientThatLeavesDuringTheBackoffEndsThem) {
  FakeUpstream upstream(serve(answer(503, "")));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3, "1s")});
  RawClient client = asking(weird, "/x");
  upstream.wait_for_requests(1);
  client.close();
  weird.wait_for_metric("weir_requests_total", {{"outcome", "client_gone"}}, 1);
  EXPECT_EQ(upstream.requests().size(), 1U);
}

TEST(Retries, AClientCannotSayHowManyAttemptsThereWere) {
  FakeUpstream upstream(in_turn({send_and_close(""), serve(answer(200, ""))}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3)});
  RawClient client = asking(weird, "/x", {"Grpc-Previous-Rpc-Attempts: 7"});
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(previous_attempts(upstream), (Values{"", "1"}));
}

TEST(Retries, WithoutAPolicyTheFieldsAreLeftAlone) {
  FakeUpstream upstream(serve(answer(503, "", {"grpc-previous-rpc-attempts: 2"})));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client = asking(weird, "/x", {"grpc-previous-rpc-attempts: 7"});
  EXPECT_EQ(client.read_answer().fields.get(kHeader), "2");
  EXPECT_EQ(previous_attempts(upstream), Values{"7"});
}

}  // namespace
}  // namespace weir::test
