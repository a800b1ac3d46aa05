// Cooldowns as clients and the upstream see them: who is held after a 429 or a 503, for how long,
// and how one leaves. Delays are Retry-After's here, as the drawn ones are next to nothing.

#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/support/answers.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

using std::chrono::steady_clock;

// Long enough for whoever is to be held to come.
const Span kDelay = sanitized ? 3s : 1s;
const std::string kRetryAfter =
    "Retry-After: " +
    std::to_string(std::chrono::duration_cast<std::chrono::seconds>(kDelay).count());
const std::string kCooldown =
    "cooldown: {enabled: true, on_429: {base: 1ms, max: 1ms}, on_503: {base: 1ms, max: 1ms}}";

const std::string kRetry =
    "\nservice_config: {methodConfig: [{name: [{}], retryPolicy: {maxAttempts: 2, initialBackoff: "
    "0.01s, maxBackoff: 0.01s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE]}}]}";

// Answers as the path says: /429 and /503 with a Retry-After, /pushed with 429, one and leave to
// try again at once, /held when the gate opens, all others 200.
class Cooldowns : public testing::Test {
 protected:
  Config config(const std::string& rule = "{limit: 1000}",
                const std::string& upstream = kCooldown) {
    return {.servers = {upstream_.url()}, .upstream = upstream, .default_rule = rule};
  }
  Answer ask(const WeirdProcess& weird, const std::string& target,
             const std::string& project = "a") {
    return client(weird, target, project).read_answer();
  }
  RawClient client(const WeirdProcess& weird, const std::string& target,
                   const std::string& project = "a") {
    return asking(weird, target, {"X-Project: " + project});
  }
  Instant arrived(std::size_t request) { return upstream_.requests().at(request).arrived; }
  static double waits(const WeirdProcess& weird) {
    return weird.metric("weir_cooldown_waits_total", {{"upstream", "main"}});
  }

  Gate go_on_;
  FakeUpstream upstream_{[this](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target == "/held") connection.wait(go_on_);
      const bool fails = request->target == "/429" || request->target == "/503";
      if (request->target == "/pushed") {
        connection.send(answer(429, "not now", {kRetryAfter, "grpc-retry-pushback-ms: 1"}));
      } else {
        connection.send(fails
                            ? answer(std::stoi(request->target.substr(1)), "not now", {kRetryAfter})
                            : answer(200, "ok"));
      }
    }
  }};
};

TEST_F(Cooldowns, A429DelaysTheProjectsNextRequestsAndNobodyElses) {
  WeirdProcess weird(config());
  EXPECT_EQ(ask(weird, "/429").status, 429) << "is passed on";
  RawClient held = client(weird, "/next");
  EXPECT_EQ(ask(weird, "/other", "b").status, 200);
  wait_for_line(weird, 1);
  const Answer got = held.read_answer();
  EXPECT_EQ(got.status, 200);
  EXPECT_GE(std::stoi(got.fields.get("Weir-Waited-Ms")), kDelay.count() * 9 / 10);
  EXPECT_EQ(upstream_.targets(), (std::vector<std::string>{"/429", "/other", "/next"}));
  EXPECT_GE(arrived(2) - arrived(0), kDelay);
  EXPECT_LT(arrived(2) - arrived(0), kDelay + (sanitized ? 2000ms : 500ms));
  EXPECT_EQ(waits(weird), 1);
  EXPECT_EQ(ask(weird, "/again").status, 200) << "the success has cleared it";
  EXPECT_EQ(waits(weird), 1);
}

TEST_F(Cooldowns, A503DelaysAllProjects) {
  WeirdProcess weird(config());
  EXPECT_EQ(ask(weird, "/503", "a").status, 503);
  EXPECT_EQ(ask(weird, "/next", "b").status, 200);
  EXPECT_GE(arrived(1) - arrived(0), kDelay);
}

TEST_F(Cooldowns, TheScopeSaysWhomAFailureIsFor) {
  WeirdProcess weird(
      config("{limit: 1000}",
             "cooldown: {enabled: true, project: \"segment:1\", on_429: {base: 1ms, "
             "max: 1ms, scope: global}, on_503: {base: 1ms, max: 1ms, scope: project}}"));
  EXPECT_EQ(ask(weird, "/503").status, 503);
  EXPECT_EQ(ask(weird, "/other").status, 200);
  EXPECT_LT(arrived(1) - arrived(0), kDelay);
  EXPECT_EQ(ask(weird, "/429").status, 429);
  EXPECT_EQ(ask(weird, "/other").status, 200);
  EXPECT_GE(arrived(3) - arrived(2), kDelay);
}

TEST_F(Cooldowns, HoldRequestsOfEveryWorker) {
  Config all = config();
  all.workers = 4;
  WeirdProcess weird(all);
  ask(weird, "/429");
  std::vector<RawClient> held;
  for (int i = 0; i < 16; ++i) held.push_back(client(weird, "/next"));
  wait_for_line(weird, 16);
  EXPECT_EQ(upstream_.requests().size(), 1u);
  for (RawClient& one : held) EXPECT_EQ(one.read_answer().status, 200);
  for (std::size_t i = 1; i <= 16; ++i) EXPECT_GE(arrived(i) - arrived(0), kDelay);
  EXPECT_EQ(waits(weird), 16);
}

TEST_F(Cooldowns, AreLeftByOneProbeAndThenByTheRest) {
  WeirdProcess weird(config("{unlimited: true}"));
  ask(weird, "/429");
  std::vector<RawClient> held;
  for (int i = 0; i < 6; ++i) held.push_back(client(weird, "/held"));
  wait_for_line(weird, 6);
  upstream_.wait_for_requests(2);
  wait_for_line(weird, 5);
  EXPECT_TRUE(held.back().quiet_for(300ms));
  EXPECT_EQ(upstream_.requests().size(), 2u) << "one alone";
  go_on_.open();
  for (RawClient& one : held) EXPECT_EQ(one.read_answer().status, 200);
}

TEST_F(Cooldowns, AProbeThatIsNotAnsweredKeepsTheRestWaitingForSomeSecondsOnly) {
  WeirdProcess weird(config("{unlimited: true}"));
  ask(weird, "/429");
  RawClient stuck = client(weird, "/held");
  wait_for_line(weird, 1);
  std::vector<RawClient> held;
  for (int i = 0; i < 3; ++i) held.push_back(client(weird, "/next"));
  for (RawClient& one : held) EXPECT_EQ(one.read_answer().status, 200);
  EXPECT_GE(arrived(2) - arrived(1), 5s);
  EXPECT_LT(arrived(4) - arrived(1), 10s) << "all of them on the second one's success";
  go_on_.open();
  EXPECT_EQ(stuck.read_answer().status, 200);
}

TEST_F(Cooldowns, AProbeThatFailsKeepsTheRestWaiting) {
  WeirdProcess weird(config("{unlimited: true}"));
  ask(weird, "/429");
  RawClient probe = client(weird, "/429");
  wait_for_line(weird, 1);
  RawClient held = client(weird, "/next");
  EXPECT_EQ(probe.read_answer().status, 429);
  EXPECT_EQ(held.read_answer().status, 200);
  EXPECT_GE(arrived(1) - arrived(0), kDelay);
  EXPECT_GE(arrived(2) - arrived(1), kDelay);
}

TEST_F(Cooldowns, AProbeThatHasToWaitForAUnitKeepsNobodyWaiting) {
  WeirdProcess weird(config("{limit: 1, window: 24h}"));
  EXPECT_EQ(ask(weird, "/full").status, 200);
  ask(weird, "/429");
  RawClient first = client(weird, "/full");
  wait_for_line(weird, 1);
  RawClient second = client(weird, "/free");
  EXPECT_EQ(second.read_answer().status, 200);
  wait_for_line(weird, 1);
  EXPECT_TRUE(first.quiet_for(100ms));
}

TEST_F(Cooldowns, WhoHasWaitedForAUnitMeetsTheCooldownThatBeganMeanwhile) {
  WeirdProcess weird(config("{resource: all, limit: 1, mode: in_flight}"));
  RawClient first = client(weird, "/held", "b");
  upstream_.wait_for_requests(1);
  RawClient failing = client(weird, "/429");
  wait_for_line(weird, 1);
  RawClient held = client(weird, "/next");
  wait_for_line(weird, 2);
  go_on_.open();
  EXPECT_EQ(failing.read_answer().status, 429);
  EXPECT_EQ(ask(weird, "/other", "c").status, 200) << "the unit is free meanwhile";
  EXPECT_EQ(held.read_answer().status, 200);
  EXPECT_EQ(upstream_.targets(), (std::vector<std::string>{"/held", "/429", "/other", "/next"}));
  EXPECT_GE(arrived(3) - arrived(1), kDelay);
}

TEST_F(Cooldowns, CountAsWaitingAndEndIn429WhenThatRunsOut) {
  WeirdProcess weird(config("{limit: 1000, wait: 300ms}"));
  ask(weird, "/429");
  const Instant asked = steady_clock::now();
  const Answer got = ask(weird, "/next");
  expect_problem(got, 429, "cooldown");
  EXPECT_GE(steady_clock::now() - asked, 300ms);
  EXPECT_EQ("Retry-After: " + got.fields.get("Retry-After"), kRetryAfter);
  EXPECT_TRUE(got.fields.has("RateLimit"));
  EXPECT_EQ(upstream_.requests().size(), 1u);
  weird.wait_for_metric("weir_requests_total", {{"outcome", "cooldown"}}, 1);  // behind the answer
  EXPECT_EQ(weird.metric("weir_units_total", {{"event", "spent"}}), 1);
}

TEST_F(Cooldowns, WhereNobodyMayWaitTheAnswerIsGivenAtOnce) {
  WeirdProcess weird(config("{limit: 1000, wait: 0s}"));
  ask(weird, "/429");
  expect_problem(ask(weird, "/next"), 429, "cooldown");
  EXPECT_LT(steady_clock::now() - arrived(0), kDelay);
  EXPECT_EQ(waits(weird), 1);
}

TEST_F(Cooldowns, WhoLeavesIsGoneAndNothingIsSentForHim) {  // J-10
  WeirdProcess weird(config());
  ask(weird, "/429");
  RawClient leaving = client(weird, "/left");
  wait_for_line(weird, 1);
  RawClient staying = client(weird, "/stays");
  wait_for_line(weird, 2);
  leaving.close();
  wait_for_line(weird, 1);
  weird.wait_for_metric("weir_requests_total", {{"outcome", "client_gone"}}, 1);
  EXPECT_EQ(staying.read_answer().status, 200);
  EXPECT_EQ(upstream_.targets(), (std::vector<std::string>{"/429", "/stays"}));
}

TEST_F(Cooldowns, ADrainAnswersThoseWhoAreHeld) {
  WeirdProcess weird(config());
  ask(weird, "/429");
  RawClient held = client(weird, "/next");
  wait_for_line(weird, 1);
  weird.signal(SIGTERM);
  const Answer got = held.read_answer();
  expect_problem(got, 503, "draining");
  EXPECT_LT(steady_clock::now() - arrived(0), kDelay);
  EXPECT_EQ(weird.wait_for_exit()->code, 0);
  EXPECT_EQ(upstream_.requests().size(), 1u);
}

TEST_F(Cooldowns, MoreThanMayWaitGet503) {
  Config few = config();
  few.rest = "max_waiting: 2";
  WeirdProcess weird(few);
  ask(weird, "/429");
  RawClient one = client(weird, "/1"), two = client(weird, "/2");
  wait_for_line(weird, 2);
  expect_problem(ask(weird, "/3"), 503, "queue_full");
  EXPECT_EQ(one.read_answer().status, 200);
  EXPECT_EQ(two.read_answer().status, 200);
}

TEST_F(Cooldowns, OfAPushbackAndACooldownTheLaterHolds) {
  FakeUpstream upstream(
      in_turn({send_and_close(answer(429, "", {"grpc-retry-pushback-ms: 50", kRetryAfter})),
               send_and_close(answer(429, "", {"grpc-retry-pushback-ms: 1500"})),
               serve(answer(200, "ok"))}));
  WeirdProcess weird(
      {.servers = {upstream.url()},
       .upstream = kCooldown +
                   "\nservice_config: {methodConfig: [{name: [{}], retryPolicy: {maxAttempts: 3, "
                   "initialBackoff: 0.01s, maxBackoff: 0.01s, backoffMultiplier: 1, "
                   "retryableStatusCodes: [UNAVAILABLE]}}]}"});
  EXPECT_EQ(get(weird.port(), "/x").status, 200);
  const auto requests = upstream.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_GE(requests[1].arrived - requests[0].arrived, kDelay) << "the cooldown";
  EXPECT_GE(requests[2].arrived - requests[1].arrived, 1500ms) << "the pushback";
}

TEST_F(Cooldowns, ARetryThatWouldHaveToWaitLongerThanTheRuleAllowsIsNotMade) {
  FakeUpstream upstream(
      serve(answer(429, "mine", {"grpc-retry-pushback-ms: 10", "Retry-After: 9"})));
  WeirdProcess weird(
      {.servers = {upstream.url()},
       .upstream = kCooldown +
                   "\nservice_config: {methodConfig: [{name: [{}], retryPolicy: {maxAttempts: 3, "
                   "initialBackoff: 0.01s, maxBackoff: 0.01s, backoffMultiplier: 1, "
                   "retryableStatusCodes: [UNAVAILABLE]}}]}",
       .default_rule = "{limit: 100, wait: 5s}"});
  const Answer got = get(weird.port(), "/x");
  EXPECT_EQ(got.body, "mine");
  const auto requests = upstream.requests();
  EXPECT_EQ(requests.size(), 1u);
  EXPECT_LT(steady_clock::now() - requests[0].arrived, 4s);
  EXPECT_EQ(weird.metric("weir_retry_refused_total", {{"reason", "pushback"}}), 1);
}

const std::string kHedging =
    "\nservice_config: {methodConfig: [{name: [{}], hedgingPolicy: {maxAttempts: 3, "
    "hedgingDelay: 0.1s, nonFatalStatusCodes: [UNAVAILABLE]}}]}";

TEST_F(Cooldowns, AHedgeIsNotSentDuringACooldownAndTheFailureStands) {
  WeirdProcess weird(config("{limit: 1000}", kCooldown + kHedging));
  EXPECT_EQ(ask(weird, "/pushed").body, "not now");
  EXPECT_LT(steady_clock::now() - arrived(0), kDelay);
  EXPECT_EQ(upstream_.requests().size(), 1u);
}

TEST_F(Cooldowns, AHedgeBesideAnAttemptThatIsUnderWayIsSentBehindTheCooldown) {
  WeirdProcess weird(config("{limit: 1000}", kCooldown + kHedging));
  RawClient hedged = client(weird, "/held");
  upstream_.wait_for_requests(1);
  EXPECT_EQ(ask(weird, "/pushed").status, 429);
  upstream_.wait_for_requests(3);
  EXPECT_EQ(upstream_.targets(), (std::vector<std::string>{"/held", "/pushed", "/held"}));
  EXPECT_GE(arrived(2) - arrived(1), kDelay);
  go_on_.open();
  EXPECT_EQ(hedged.read_answer().status, 200);
}

TEST_F(Cooldowns, ADrainCutsNoCallWhoseRetryIsHeld) {
  WeirdProcess weird(config("{limit: 1000}", kCooldown + kRetry));
  RawClient failing = client(weird, "/pushed");
  wait_for_line(weird, 1);
  weird.signal(SIGTERM);
  EXPECT_EQ(failing.read_answer().body, "not now");
  EXPECT_EQ(weird.wait_for_exit()->code, 0);
  EXPECT_EQ(upstream_.requests().size(), 1u);
}

TEST_F(Cooldowns, ARetryThatIsHeldKeepsNoUnit) {
  for (const char* mode : {"in_flight", "until_done, window: 24h"}) {
    const std::string rule = std::string{"{resource: all, limit: 1, mode: "} + mode + "}";
    WeirdProcess weird(config(rule, kCooldown + kRetry));
    const std::size_t before = upstream_.requests().size();
    RawClient failing = client(weird, "/pushed");
    wait_for_line(weird, 1);
    EXPECT_EQ(ask(weird, "/other", "b").status, 200) << mode;
    EXPECT_LT(arrived(before + 1) - arrived(before), kDelay) << mode;
    EXPECT_EQ(failing.read_answer().body, "not now");
    EXPECT_EQ(upstream_.requests().size(), before + 3) << "and took another for its second try";
  }
}

TEST_F(Cooldowns, ARetryThatIsHeldKeepsItsUnitWhileTheFailuresAnswerIsStillComing) {
  const std::string begun = lines({"HTTP/1.1 429 Too Many Requests", "Content-Length: 100",
                                   kRetryAfter, "grpc-retry-pushback-ms: 1"}) +
                            "not now";
  for (const char* mode : {"in_flight", "until_done, window: 24h"}) {
    FakeUpstream upstream([&](UpstreamConnection& connection) {
      while (const auto request = connection.read_request()) {
        connection.send(connection.number() == 1 ? begun : answer(200, "ok"));
        if (connection.number() == 1) return;
      }
    });
    WeirdProcess weird(
        {.servers = {upstream.url()},
         .upstream = kCooldown + kRetry,
         .default_rule = std::string{"{resource: all, limit: 1, mode: "} + mode + "}"});
    RawClient failing = client(weird, "/failing");
    wait_for_line(weird, 1);
    RawClient other = client(weird, "/other", "b");
    EXPECT_EQ(failing.read_answer().status, 200) << mode;
    EXPECT_EQ(other.read_answer().status, 200) << mode;
    EXPECT_EQ(upstream.targets(), (std::vector<std::string>{"/failing", "/failing", "/other"}))
        << mode;
  }
}

TEST_F(Cooldowns, ARetryThatFindsNoUnitBehindItLeavesTheFailureAsItWas) {
  WeirdProcess weird(config("{resource: all, limit: 1, mode: in_flight}", kCooldown + kRetry));
  RawClient failing = client(weird, "/pushed");
  wait_for_line(weird, 1);
  RawClient other = client(weird, "/held", "b");
  EXPECT_EQ(failing.read_answer().body, "not now");
  EXPECT_GE(steady_clock::now() - arrived(0), kDelay);
  EXPECT_EQ(upstream_.targets(), (std::vector<std::string>{"/pushed", "/held"}));
  go_on_.open();
  EXPECT_EQ(other.read_answer().status, 200);
}

// While the first request connects, for a second, its unit's window ends, and the cooldown begins.
TEST_F(Cooldowns, TheCallsTimeDoesNotRunWhileItIsHeldBeforeAnythingOfItWasSent) {
  FullBacklog down;
  FakeUpstream upstream(
      in_turn({send_and_close(answer(429, "", {"Retry-After: 4"})), serve(answer(200, "ok"))}));
  WeirdProcess weird({.servers = {upstream.url(), down.url()},  // of which the second comes first
                      .upstream = kCooldown +
                                  "\nconnect_timeout: 1s\nservice_config: {methodConfig: [{name: "
                                  "[{}], timeout: 3.5s}]}",
                      .workers = 1,
                      .default_rule = "{limit: 1000, window: 1s}"});
  RawClient connecting = client(weird, "/next");
  weird.wait_for_metric("weir_attempts_total", {{"kind", "first"}}, 1);
  EXPECT_EQ(ask(weird, "/429").status, 429);
  const Answer got = connecting.read_answer();
  EXPECT_EQ(got.status, 200) << got.body;
  const auto requests = upstream.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_GE(requests[1].arrived - requests[0].arrived, 4s);
}

TEST_F(Cooldowns, AreShownWithTheirProjectsAndOtherAnswersChangeNothing) {  // J-6
  FakeUpstream upstream(serve(
      [](const Received& request) { return answer(std::stoi(request.target.substr(1)), ""); }));
  WeirdProcess weird({.servers = {upstream.url()},
                      .upstream = "cooldown: {enabled: true, on_429: {base: 1ms, max: 1ms}}"});
  const auto shown = [&] {
    const auto page = nlohmann::json::parse(weird.admin("/v1/upstreams").body);
    const auto& main = page.at("upstreams").at(0);
    EXPECT_EQ(main.at("name"), "main");
    return main.at("cooldowns");
  };
  EXPECT_EQ(shown().at("records"), 0);
  EXPECT_EQ(ask(weird, "/429", "p").status, 429);
  EXPECT_EQ(shown().at("records"), 1);
  EXPECT_EQ(shown().at("longest").at(0).at("project"), "p");
  EXPECT_EQ(shown().at("longest").at(0).at("status"), 429);
  for (const int other : {301, 400, 404, 500, 502, 504}) {
    EXPECT_EQ(ask(weird, "/" + std::to_string(other), "p").status, other);
    EXPECT_EQ(shown().at("records"), 1) << other;
    EXPECT_EQ(shown().at("longest").at(0).at("failures"), 1) << other;
  }
  EXPECT_EQ(ask(weird, "/204", "p").status, 204);
  EXPECT_EQ(shown().at("records"), 0);
}

TEST_F(Cooldowns, LiveOnWhenTheConfigurationIsReadAnew) {
  WeirdProcess weird(config());
  ask(weird, "/429");
  weird.write_config(config("{limit: 999}"));
  weird.wait_for_metric("weir_config_reloads_total", {{"result", "ok"}}, 1);
  EXPECT_EQ(ask(weird, "/next").status, 200);
  EXPECT_GE(arrived(1) - arrived(0), kDelay);
}

TEST_F(Cooldowns, WithoutThemA429DelaysNobody) {
  WeirdProcess weird(config("{limit: 1000}", ""));
  ask(weird, "/429");
  EXPECT_EQ(ask(weird, "/next").status, 200);
  EXPECT_LT(arrived(1) - arrived(0), kDelay);
}

}  // namespace
}  // namespace weir::test
