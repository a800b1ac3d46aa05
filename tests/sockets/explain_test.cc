// /v1/explain against what then really happens to the request that was asked about.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/answers.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

using nlohmann::json;

class Explain : public testing::Test {
 protected:
  static json explain(const WeirdProcess& weird, const std::string& query) {
    const Answer answer = weird.admin("/v1/explain?" + query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body);
  }
  static std::string what(const WeirdProcess& weird, const std::string& query) {
    return explain(weird, query).at("prospect").at("what");
  }
  Config config(const std::string& rules, const std::string& upstream = "") const {
    return {.servers = {upstream_.url()}, .upstream = upstream, .rest = "rules:\n" + rules};
  }

  FakeUpstream upstream_{serve([](const Received& request) {
    if (request.target == "/429") return answer(429, "no", {"Retry-After: 1000"});
    return answer(200, "ok");
  })};
};

TEST_F(Explain, ForetellsWhatTheLimitWillSay) {
  WeirdProcess weird(config("  - {name: r, match: {path: /r/*}, limit: 2, window: 24h, wait: 0s}"));
  RawClient client(weird.port());
  for (int i = 0; i < 2; ++i) {
    const std::string expected = what(weird, "path=/r/1");
    EXPECT_TRUE(expected == "go" || expected == "claim") << expected;
    EXPECT_EQ(client.get("/r/1").status, 200);
  }
  const json page = explain(weird, "path=/r/1");
  EXPECT_EQ(page.at("prospect").at("what"), "refuse");
  EXPECT_EQ(page.at("prospect").at("status"), 429);
  EXPECT_EQ(page.at("prospect").at("reason"), "limit");
  EXPECT_EQ(page.at("usage").at("used"), 2);
  EXPECT_EQ(page.at("usage").at("left"), 0);
  expect_problem(client.get("/r/1"), 429, "limit");
  EXPECT_EQ(what(weird, "path=/r/2"), "go");
  EXPECT_EQ(what(weird, "path=/elsewhere"), "go") << "that rule has no limit";
}

TEST_F(Explain, AskingCostsNothing) {
  WeirdProcess weird(config("  - {name: r, match: {path: /r/*}, limit: 2, window: 24h, wait: 0s}"));
  for (int i = 0; i < 10; ++i) EXPECT_NE(what(weird, "path=/r/1"), "refuse");
  EXPECT_EQ(weird.metric("weir_resources"), 0);
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/r/1").status, 200);
  EXPECT_EQ(client.get("/r/1").status, 200);
  EXPECT_EQ(upstream_.requests().size(), 2u);
}

TEST_F(Explain, SaysWhoIsAheadAndWhenTheWindowEnds) {
  WeirdProcess weird(config("  - {name: r, match: {path: /r/*}, limit: 1, window: 24h}"));
  EXPECT_EQ(get(weird.port(), "/r/1").status, 200);
  const auto clients = lined_up(weird, {"/r/1", "/r/1"});
  const json prospect = explain(weird, "path=/r/1").at("prospect");
  EXPECT_EQ(prospect.at("what"), "wait");
  EXPECT_EQ(prospect.at("ahead"), 2);
  const json resource = json::parse(weird.admin("/v1/resources?name=/r/1").body);
  // The third of the days from today on, as there are two before it and one unit a day.
  const double days = prospect.at("wait_ms").get<double>() / 86'400'000;
  EXPECT_GT(days, 2);
  EXPECT_LT(days, 3);
  EXPECT_TRUE(prospect.at("not_before").get<std::string>().ends_with("T00:00:00.000Z"));
}

TEST_F(Explain, ForetellsACooldownForTheProjectThatIsHeld) {
  WeirdProcess weird(config("  - {name: r, match: {path: /r}, limit: 5, window: 24h, wait: 0s}",
                            "cooldown: {enabled: true}"));
  EXPECT_EQ(asking(weird, "/429", {"X-Project: a"}).read_answer().status, 429);
  const json page = explain(weird, "path=/r&header=X-Project:a");
  EXPECT_EQ(page.at("prospect").at("reason"), "cooldown");
  EXPECT_EQ(page.at("upstream").at("cooldown").at("held"), true);
  EXPECT_GT(page.at("upstream").at("cooldown").at("left_ms"), 900'000);
  expect_problem(asking(weird, "/r", {"X-Project: a"}).read_answer(), 429, "cooldown");
  EXPECT_EQ(what(weird, "path=/r&header=X-Project:b"), "go");
  EXPECT_EQ(asking(weird, "/r", {"X-Project: b"}).read_answer().status, 200);
}

TEST_F(Explain, WhatNoRuleIsAskedAboutIsRefusedForTheSameReason) {
  WeirdProcess weird(config("  - {name: r, match: {path: /r}}"));
  for (const std::string target : {"/a%2Fb", "/a/../../b", "/..;x/b", "/%00"}) {
    std::string encoded;
    for (const char c : target) encoded += c == '%' ? "%25" : std::string(1, c);
    const json page = explain(weird, "path=" + encoded);
    EXPECT_EQ(page.at("prospect").at("status"), 400) << target;
    const Answer refused = get(weird.port(), target);
    EXPECT_EQ(refused.status, 400);
    const std::string detail = json::parse(refused.body).at("detail");
    EXPECT_EQ(page.at("prospect").at("text"), "is turned away: malformed, " + detail);
    EXPECT_FALSE(page.contains("rule"));
  }
}

TEST_F(Explain, NamesTheRuleTheResourceTheTenantAndWhyNoneBefore) {
  WeirdProcess weird({.servers = {upstream_.url()},
                      .rest =
                          "tenant: header:x-tenant\n"
                          "rules:\n"
                          "  - {name: posts, match: {path: /t/*, methods: [POST]}}\n"
                          "  - {name: tenants, match: {path: /t/*}, resource: \"{segment:2}\"}"});
  const json page = explain(weird, "path=//t/./blue%3Fx=1&header=X-Tenant:%20me&host=h.example");
  EXPECT_EQ(page.at("path").at("counted"), "/t/blue");
  EXPECT_EQ(page.at("path").at("forwarded"), "/t/blue?x=1");
  EXPECT_EQ(page.at("rule").at("name"), "tenants");
  EXPECT_EQ(page.at("rule").at("passed_over"),
            json::parse(R"([{"name": "posts", "differs": ["method"]}])"));
  EXPECT_EQ(page.at("resource"), "blue");
  EXPECT_EQ(page.at("tenant"), "me");
  EXPECT_EQ(page.at("limit").at("mode"), "started");
  EXPECT_EQ(page.at("upstream").at("name"), "main");
}

TEST_F(Explain, TellsWhichRetryPolicyApplies) {
  WeirdProcess weird(
      config("  - {name: r, match: {path: /r}}",
             "service_config: {methodConfig: [{name: [{}], timeout: 3s, retryPolicy: "
             "{maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, "
             "backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE, 500]}}]}"));
  const json retries = explain(weird, "path=/r").at("upstream").at("retries");
  EXPECT_EQ(retries.at("policy"), "retry");
  EXPECT_EQ(retries.at("max_attempts"), 3);
  EXPECT_EQ(retries.at("codes"), json::parse(R"(["UNAVAILABLE", "500"])"));
  EXPECT_EQ(retries.at("timeout_ms"), 3000);
  const json post = explain(weird, "path=/r&method=POST").at("upstream").at("retries");
  EXPECT_EQ(post.at("policy"), "none");
  EXPECT_EQ(post.at("because"), "POST is repeated only where a policy names its path");
}

TEST_F(Explain, ShowsWhatTheThrottleHasLearned) {
  WeirdProcess weird(config("  - {name: r, match: {path: /r}, unlimited: true}",
                            "throttle: {kind: aimd, initial_rate: 50, ceiling: 50}"));
  EXPECT_EQ(get(weird.port(), "/r").status, 200);
  const json page = explain(weird, "path=/r");
  EXPECT_EQ(page.at("prospect").at("what"), "go");
  const json& throttle = page.at("upstream").at("throttle");
  EXPECT_EQ(throttle.at("kind"), "aimd");
  EXPECT_EQ(throttle.at("rate"), 50);
  EXPECT_EQ(throttle.at("waiting"), 0);
  const json upstreams = json::parse(weird.admin("/v1/upstreams").body);
  EXPECT_EQ(upstreams.at("upstreams").at(0).at("throttle").at("denied"), 0);
}

TEST_F(Explain, FollowsAReload) {
  Config before = config("  - {name: r, match: {path: /r}, unlimited: true}");
  WeirdProcess weird(before);
  EXPECT_EQ(explain(weird, "path=/r").at("rule").at("name"), "r");
  weird.write_config(config("  - {name: s, match: {path: /r}, limit: 7}"));
  weird.wait_for_metric("weir_config_reloads_total", {{"result", "ok"}}, 1);
  const json page = explain(weird, "path=/r");
  EXPECT_EQ(page.at("rule").at("name"), "s");
  EXPECT_EQ(page.at("usage").at("of"), 7);
}

TEST_F(Explain, AQuestionThatIsNoneIs400AndSaysWhatItTakes) {
  WeirdProcess weird(config("  - {name: r, match: {path: /r}}"));
  for (const char* query : {"", "path", "path=%4", "path=/&client=me", "path=/&verb=GET"}) {
    const Answer answer = weird.admin(std::string("/v1/explain?") + query);
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_TRUE(json::parse(answer.body).at("error").is_string()) << query;
  }
}

}  // namespace
}  // namespace weir::test
