// Throttles as clients and the upstream see them: who is let go, who is turned away, and what is
// learned from what became of attempts.

#include <atomic>
#include <thread>

#include "tests/sockets/throttled.h"

namespace weir::test {
namespace {

TEST_F(Throttled, WhoeverIsBeyondTheRateGets503AndItsUnitGoesBack) {
  WeirdProcess weird(config(tokens(3), "{limit: 10, window: 24h, resource: all}"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(weird, "/200").status, 200);
  for (int i = 0; i < 3; ++i) {
    const Answer got = ask(weird, "/200");
    expect_problem(got, 503, "throttled");
    EXPECT_GE(std::stoi(got.fields.get("Retry-After")), 900) << "when there is a token";
    EXPECT_EQ(got.fields.get("RateLimit-Policy"), "\"default\";q=10;w=86400");
    EXPECT_NE(got.fields.get("RateLimit").find("r=7"), std::string::npos)
        << got.fields.get("RateLimit");
  }
  EXPECT_EQ(upstream_.requests().size(), 3u);
  weird.wait_for_metric("weir_requests_total", {{"outcome", "throttled"}}, 3);
  EXPECT_EQ(denials(weird), 3);
  EXPECT_EQ(weird.metric("weir_units_total", {{"event", "spent"}}), 3);
  EXPECT_EQ(weird.metric("weir_attempts_total"), 3) << "what was not sent is no attempt";
}

TEST_F(Throttled, AUnitThatWentBackIsThereForTheNext) {
  WeirdProcess weird(
      config("throttle: {kind: sfq, buckets: 65536, initial_rate: 0.001, floor: 0.0001, ceiling: "
             "0.001, burst: 1ms}",
             "{limit: 3, window: 24h, resource: all, wait: 0s}"));
  EXPECT_EQ(served(weird, 5, "a"), 2) << "tokens";
  EXPECT_EQ(served(weird, 5, "b"), 1) << "units";
}

TEST_F(Throttled, AllWorkersHaveOneThrottle) {
  Config all = config(tokens(5));
  all.workers = 4;
  WeirdProcess weird(all);
  int count = 0;
  for (int i = 0; i < 40; ++i) count += ask(weird, "/200").status == 200;
  EXPECT_EQ(count, 5);
}

TEST_F(Throttled, EachTenantHasItsOwnBucketButForAimd) {
  const std::string two =
      ", buckets: 65536, initial_rate: 0.001, floor: 0.0001, ceiling: 0.001, burst: 1ms}";
  for (const std::string kind : {"aimd", "sfq", "bloom"}) {
    WeirdProcess weird(config("throttle: {kind: " + kind + two));
    EXPECT_EQ(served(weird, 5, "a"), 2) << kind;
    EXPECT_EQ(served(weird, 5, "b"), kind == "aimd" ? 0 : 2) << kind;
  }
}

TEST_F(Throttled, WithoutOneNobodyIsTurnedAway) {
  WeirdProcess weird(config("throttle: {kind: off}"));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(ask(weird, "/503").body, "from the upstream");
  EXPECT_EQ(denials(weird), 0);
  EXPECT_EQ(weird.admin("/metrics").body.find("weir_throttle_rate{"), std::string::npos);
}

TEST_F(Throttled, OnlyOverloadLowersTheRate) {
  FakeUpstream refusing(serve(""), Start::refusing);
  const std::string steady =
      "response_timeout: 200ms\nthrottle: {kind: aimd, initial_rate: 1000, increase: 10}";
  WeirdProcess weird(config(steady));
  double learned = 1000;
  for (const char* neutral : {"/400", "/404", "/500", "/502", "/504", "/200", "/301"}) {
    ask(weird, neutral);
    EXPECT_NEAR(rate(weird), learned, 1e-6) << neutral << ", and there was no need for more";
  }
  {
    RawClient leaving = client(weird, "/held");
    upstream_.wait_for_requests(8);
  }
  weird.wait_for_metric("weir_requests_total", {{"outcome", "client_gone"}}, 1);
  EXPECT_NEAR(rate(weird), learned, 1e-6);
  expect_none_dropped(weird);
  for (const char* overload : {"/429", "/503", "/left"}) {
    ask(weird, overload);
    EXPECT_NEAR(rate(weird), learned *= 0.7, 1e-6) << overload;
  }
  Config none = config(steady);
  none.servers = {refusing.url()};
  WeirdProcess alone(none);
  EXPECT_EQ(ask(alone, "/200").status, 502);
  EXPECT_NEAR(rate(alone), 700, 1e-6) << "nobody listens";
}

TEST_F(Throttled, SuccessRaisesTheRateWhileItLimits) {
  WeirdProcess weird(config("throttle: {kind: aimd, initial_rate: 0.5, floor: 0.5}"));
  EXPECT_EQ(served(weird, 1), 1);
  EXPECT_EQ(rate(weird), 0.5) << "there were two tokens";
  EXPECT_EQ(served(weird, 1), 1);
  EXPECT_EQ(rate(weird), 1.5);
}

TEST_F(Throttled, OwnDenialsTeachNothing) {
  WeirdProcess weird(
      config("throttle: {kind: aimd, initial_rate: 0.001, floor: 0.0001, increase: 0.0001, burst: "
             "2000s}"));
  EXPECT_EQ(served(weird, 2), 2);
  const double learned = rate(weird);
  EXPECT_EQ(served(weird, 20), 0);
  EXPECT_EQ(rate(weird), learned);
}

TEST_F(Throttled, ACallsOwnTimesCountAsOverloadButWhereItsClientIsSlow) {
  const std::string throttle = "throttle: {kind: aimd, initial_rate: 1000}";
  {
    WeirdProcess weird(
        config(throttle + "\nservice_config: {methodConfig: [{name: [{}], timeout: 0.2s}]}"));
    EXPECT_EQ(ask(weird, "/held").status, 504);
    EXPECT_NEAR(rate(weird), 700, 1e-6);
    RawClient slow(weird.port());
    slow.send("POST /200 HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx");
    EXPECT_EQ(slow.read_answer().status, 504);
    EXPECT_NEAR(rate(weird), 700, 1e-6);
  }
  WeirdProcess weird(
      config(throttle +
             "\nservice_config: {methodConfig: [{name: [{}], retryPolicy: {maxAttempts: 2, "
             "initialBackoff: 0.01s, maxBackoff: 0.01s, backoffMultiplier: 1, "
             "perAttemptRecvTimeout: 0.2s, retryableStatusCodes: [UNAVAILABLE]}}]}"));
  EXPECT_EQ(ask(weird, "/held").status, 504);
  EXPECT_NEAR(rate(weird), 490, 1e-6) << "each of its attempts";
}

// So many requests by some clients at once; how many got through to an upstream that takes its time
// and is overloaded.
int sent_to_overloaded(const std::string& throttle, int requests, int clients, Span takes) {
  FakeUpstream upstream([takes](UpstreamConnection& connection) {
    while (connection.read_request()) {
      std::this_thread::sleep_for(takes);  // its work
      connection.send(answer(503, ""));
    }
  });
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = throttle});
  std::atomic<int> left = requests;
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&] {
      RawClient client(weird.port());
      while (left-- > 0) EXPECT_EQ(client.get("/").status, 503);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return static_cast<int>(upstream.requests().size());
}

TEST_F(Throttled, EveryKindKeepsAwayWhatAnOverloadedUpstreamCannotServe) {
  for (const std::string kind : {"aimd", "sfq", "bloom"}) {
    const std::string throttle = "throttle: {kind: " + kind + ", floor: 1}";
    const int sent = sent_to_overloaded(throttle, 400, 4, 0ms);
    EXPECT_GE(sent, 10) << kind;
    EXPECT_LE(sent, 80) << kind;
  }
  EXPECT_EQ(sent_to_overloaded("throttle: {kind: off}", 400, 4, 0ms), 400);
}

// Its probabilities move by half a percent in a tenth of a second, whatever there is to do.
TEST_F(Throttled, SfbDeniesMoreAndMoreOfWhatIsUnderWayBeyondTheCapacity) {
  FakeUpstream upstream([](UpstreamConnection& connection) {
    while (connection.read_request()) {
      std::this_thread::sleep_for(10ms);  // its work
      connection.send(answer(503, ""));
    }
  });
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = "throttle: {kind: sfb, floor: 1}"});
  std::atomic<bool> enough = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      RawClient client(weird.port());
      while (!enough) client.get("/");
    });
  }
  weird.wait_for_metric("weir_throttled_total", {}, 100);
  enough = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rate(weird), 1) << "one under way at a time";
}

TEST_F(Throttled, ARetryThatIsDeniedIsNotSentAndTheFailureStands) {
  WeirdProcess weird(
      config(tokens(2) + kRetrying, "{limit: 10, window: 24h, resource: all, wait: 0s}"));
  const Answer got = ask(weird, "/503");
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.body, "from the upstream");
  EXPECT_EQ(upstream_.requests().size(), 2u);
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "throttle"}}), 1);
  EXPECT_EQ(weird.metric("weir_attempts_total", {{"kind", "retry"}}), 1);
  EXPECT_NEAR(rate(weird), 0.001 * 0.7 * 0.7, 1e-9) << "each attempt was learned from, once";
  weird.wait_for_metric("weir_units_total", {{"event", "spent"}}, 2);
  EXPECT_EQ(weird.metric("weir_units_total", {{"event", "spent"}}), 2);
}

TEST_F(Throttled, AHedgeThatIsDeniedIsNotSent) {
  WeirdProcess weird(config(tokens(2) +
                            "\nservice_config: {methodConfig: [{name: [{}], hedgingPolicy: "
                            "{maxAttempts: 4, hedgingDelay: 0.02s}}]}"));
  RawClient asked = client(weird, "/held");
  weird.wait_for_metric("weir_retry_refused_total", {{"reason", "throttle"}}, 1);
  go_on_.open();
  EXPECT_EQ(asked.read_answer().status, 200);
  EXPECT_EQ(upstream_.requests().size(), 2u);
  EXPECT_EQ(weird.metric("weir_attempts_total", {{"kind", "hedge"}}), 1);
}

TEST_F(Throttled, AHedgeThatIsCancelledTeachesNothing) {
  FakeUpstream upstream(in_turn({send_and_stall(""), serve(answer(200, "second"))}));
  WeirdProcess weird({.servers = {upstream.url()},
                      .upstream = "throttle: {kind: aimd}\nservice_config: {methodConfig: [{name: "
                                  "[{}], hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.05s}}]}"});
  EXPECT_EQ(get(weird.port(), "/x").body, "second");
  upstream.wait_for_closing(1);
  EXPECT_EQ(rate(weird), 100);
  expect_none_dropped(weird);
}

// Answers the first request of a connection, and hangs up on the second.
Script serve_once() {
  return [](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.send(answer(200, "ok"));
    if (connection.read_request()) connection.close();
  };
}

TEST_F(Throttled, AReplacedConnectionThatTheRequestWasSentOnAsksAgain) {
  FakeUpstream upstream(serve_once());
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = tokens(3), .workers = 1});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").status, 200);
  EXPECT_EQ(client.get("/2").status, 200) << "sent twice";
  EXPECT_EQ(upstream.targets(), (std::vector<std::string>{"/1", "/2", "/2"}));
  expect_problem(client.get("/3"), 503, "throttled");
  expect_none_dropped(weird);
}

TEST_F(Throttled, AReplacementThatIsDeniedIsNotSent) {
  FakeUpstream upstream(serve_once());
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = tokens(2), .workers = 1});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").status, 200);
  expect_problem(client.get("/2"), 502, "upstream_failed");
  EXPECT_EQ(upstream.targets(), (std::vector<std::string>{"/1", "/2"}));
}

TEST_F(Throttled, AReloadKeepsWhatWasLearned) {
  const std::string throttle = "throttle: {kind: sfq, initial_rate: 1000}";
  WeirdProcess weird(config(throttle));
  for (int i = 0; i < 3; ++i) ask(weird, "/503");
  auto reload = [&, times = 0](const Config& next) mutable {
    weird.write_config(next);
    weird.wait_for_metric("weir_config_reloads_total", {{"result", "ok"}}, ++times);
  };
  EXPECT_NEAR(rate(weird), 343, 1e-6);
  reload(config(throttle, "{limit: 5}"));
  EXPECT_NEAR(rate(weird), 343, 1e-6) << "another field";
  reload(config("throttle: {kind: sfq, initial_rate: 1000, floor: 7}"));
  EXPECT_NEAR(rate(weird), 343, 1e-6) << "another floor";
  ask(weird, "/503");
  EXPECT_NEAR(rate(weird), 343 * 0.7, 1e-6) << "is learned by the new one";
  reload(config("throttle: {kind: aimd, initial_rate: 500}"));
  EXPECT_NEAR(rate(weird), 500, 1e-6) << "another kind, of which a rate means something else";
}

TEST_F(Throttled, IsShown) {
  WeirdProcess weird(config(tokens(2) + kRetrying));
  EXPECT_EQ(served(weird, 5), 2);
  const auto page = shown(weird);
  const auto& throttle = page.at("throttle");
  EXPECT_EQ(throttle.at("kind"), "aimd");
  EXPECT_GT(throttle.at("rate"), 0);
  EXPECT_EQ(throttle.at("buckets"), 1);
  EXPECT_EQ(throttle.at("in_use"), 1);
  EXPECT_EQ(throttle.at("waiting"), 0);
  EXPECT_EQ(throttle.at("denied"), 3);
  EXPECT_GT(page.at("budget").at("affordable"), 0);
}

}  // namespace
}  // namespace weir::test
