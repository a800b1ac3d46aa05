// What clients and operators are told about limits: fields, problem bodies, resources, metrics.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/answers.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

using nlohmann::json;

class LimitAnswers : public testing::Test {
 protected:
  Config with(const std::string& headers) const {
    return {.servers = {upstream_.url()},
            .rest = "headers: " + headers +
                    "\nrules:\n"
                    "  - {name: reports, match: {path: /reports/*}, limit: 3, window: 24h, "
                    "wait: 0s}"};
  }

  FakeUpstream upstream_{serve(answer(
      200, "ok",
      {"RateLimit: \"theirs\";r=9", "RateLimit-Policy: \"theirs\";q=9", "X-RateLimit-Limit: 9",
       "X-RateLimit-Remaining: 9", "X-RateLimit-Reset: 9", "Weir-Waited-Ms: 9"}))};
};

// "…;t=12" without its time, which must be a whole number of seconds of the window.
std::string without_time(const std::string& value) {
  const auto at = value.find(";t=");
  if (at == value.npos) return value + " without a time";
  const int seconds = std::stoi(value.substr(at + 3));
  EXPECT_GE(seconds, 1);
  EXPECT_LE(seconds, 86400);
  return value.substr(0, at);
}

TEST_F(LimitAnswers, AdmittedOnesSayWhatIsLeftInPlaceOfTheUpstreamsFields) {
  WeirdProcess weird(with("ietf"));
  RawClient client(weird.port());
  for (const char* left : {"2", "1", "0"}) {
    const Answer answer = client.get("/reports/1");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.fields.get("RateLimit-Policy"), "\"reports\";q=3;w=86400");
    EXPECT_EQ(without_time(answer.fields.get("RateLimit")), std::string("\"reports\";r=") + left);
    EXPECT_EQ(answer.fields.get("X-RateLimit-Limit"), "9") << "not ours to replace";
    EXPECT_NE(answer.fields.get("Weir-Waited-Ms"), "9");
  }
}

TEST_F(LimitAnswers, ThoseTurnedAwaySayWhyAndWhenToComeBack) {
  WeirdProcess weird(with("ietf"));
  RawClient client(weird.port());
  for (int i = 0; i < 3; ++i) client.get("/reports/1");
  const Answer answer = client.get("/reports/1?x");
  expect_problem(answer, 429, "limit");
  const json problem = json::parse(answer.body);
  EXPECT_EQ(problem.at("resource"), "/reports/1");
  EXPECT_EQ(problem.at("status"), 429);
  EXPECT_EQ(answer.fields.get("RateLimit-Policy"), "\"reports\";q=3;w=86400");
  EXPECT_EQ(without_time(answer.fields.get("RateLimit")), "\"reports\";r=0");
  EXPECT_TRUE(answer.fields.get("RateLimit").ends_with(";t=" + answer.fields.get("Retry-After")));
  EXPECT_EQ(upstream_.requests().size(), 3u);
}

TEST_F(LimitAnswers, LegacyFieldsIfAskedFor) {
  WeirdProcess weird(with("legacy"));
  RawClient client(weird.port());
  for (const char* left : {"2", "1", "0", "0"}) {
    const Answer answer = client.get("/reports/1");
    EXPECT_EQ(answer.fields.get("X-RateLimit-Limit"), "3");
    EXPECT_EQ(answer.fields.get("X-RateLimit-Remaining"), left);
    EXPECT_GE(std::stoi(answer.fields.get("X-RateLimit-Reset")), 1);
    EXPECT_EQ(answer.fields.has("RateLimit"), answer.status == 200) << "the upstream's own";
  }
}

TEST_F(LimitAnswers, NoFieldsIfTurnedOff) {
  WeirdProcess weird(with("off"));
  RawClient client(weird.port());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.get("/reports/1").fields.get("RateLimit"), "\"theirs\";r=9");
  }
  const Answer denied = client.get("/reports/1");
  expect_problem(denied, 429, "limit");
  EXPECT_FALSE(denied.fields.has("RateLimit"));
  EXPECT_GE(std::stoi(denied.fields.get("Retry-After")), 1);
}

class Resources : public testing::Test {
 protected:
  json page(const std::string& query) {
    const Answer answer = weird_.admin("/v1/resources" + query);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.fields.get("Content-Type"), "application/json");
    return json::parse(answer.body).at("resources");
  }

  FakeUpstream upstream_{serve(answer(200, "ok"))};
  WeirdProcess weird_{Config{.servers = {upstream_.url()},
                             .rest = "replica: r1",
                             .default_rule = "{limit: 3, window: 24h}"}};
};

TEST_F(Resources, TheBusiestComeFirst) {
  EXPECT_TRUE(page("").empty());
  RawClient client(weird_.port());
  for (const char* target : {"/one", "/two", "/two", "/three", "/three", "/three"}) {
    client.get(target);
  }
  auto line = lined_up(weird_, {"/three"});
  const json all = page("");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].at("name"), "/three");
  EXPECT_EQ(all[0].at("rule"), "default");
  EXPECT_EQ(all[0].at("used"), 3);
  EXPECT_EQ(all[0].at("limit"), 3);
  EXPECT_EQ(all[0].at("waiting"), 1);
  EXPECT_EQ(all[0].at("in_hand"), 0);
  EXPECT_TRUE(all[0].at("window").is_string());
  EXPECT_EQ(all[1].at("name"), "/two");
  EXPECT_EQ(page("?top=1").size(), 1u);
}

TEST_F(Resources, OneByNameComesWithItsClaims) {
  RawClient client(weird_.port());
  client.get("/a%20b/%C3%A4");
  client.get("/a%20b/%C3%A4");
  client.get("/other");
  const json found = page("?name=/a%2520b/%25C3%25A4");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at("name"), "/a%20b/%C3%A4");
  EXPECT_EQ(found[0].at("used"), found[0].at("claims").at("r1"));
  EXPECT_GE(found[0].at("used").get<int>(), 2);
  EXPECT_TRUE(found[0].at("next_free").is_string());
  EXPECT_TRUE(page("?name=/nobody").empty());
}

TEST_F(Resources, ABadQueryIs400) {
  for (const char* query : {"?top=0", "?top=many", "?top=-1", "?top=1x", "?name=%zz", "?nom=x"}) {
    const Answer answer = weird_.admin("/v1/resources" + std::string(query));
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_TRUE(json::parse(answer.body).is_object());
  }
}

// What every limit's metrics say when its three units are used and one request waits.
void expect_three_used_and_one_in_line(const WeirdProcess& weird) {
  EXPECT_EQ(weird.metric("weir_waiting"), 1);
  EXPECT_EQ(weird.metric("weir_resources"), 1);
  EXPECT_EQ(weird.metric("weir_overflow_total"), 0);
  EXPECT_EQ(weird.metric("weir_store_up"), 1);
  EXPECT_EQ(weird.metric("weir_degraded_seconds_total"), 0);
  EXPECT_GE(weird.metric("weir_claims_total", {{"result", "short"}}), 1);
  EXPECT_EQ(weird.metric("weir_units_total", {{"rule", "default"}, {"event", "claimed"}}), 3);
  EXPECT_EQ(weird.metric("weir_units_total", {{"rule", "default"}, {"event", "spent"}}), 3);
  EXPECT_EQ(weird.metric("weir_admission_overhead_seconds_bucket", {{"le", "+Inf"}}), 3);
}

TEST_F(Resources, MetricsTellOfUnitsAndTheLine) {
  RawClient client(weird_.port());
  for (int i = 0; i < 3; ++i) client.get("/");
  auto line = lined_up(weird_, {"/"});
  expect_three_used_and_one_in_line(weird_);
  EXPECT_EQ(weird_.metric("weir_claims_total", {{"result", "granted"}}), 0) << "nobody else counts";
  const std::string text = weird_.admin("/metrics").body;
  EXPECT_NE(text.find("# TYPE weir_wait_seconds histogram\n"), std::string::npos);
}

TEST_F(Resources, MetricsTellOfClaimsWhereThereAreSome) {
  WeirdProcess weird(
      {.servers = {upstream_.url()}, .default_rule = "{limit: 3, window: 24h, mode: sliding}"});
  RawClient client(weird.port());
  for (int i = 0; i < 3; ++i) client.get("/");
  auto line = lined_up(weird, {"/"});
  expect_three_used_and_one_in_line(weird);
  EXPECT_GE(weird.metric("weir_claims_total", {{"result", "granted"}}), 1);
  EXPECT_GE(weird.metric("weir_claim_seconds_count"), 1);
}

}  // namespace
}  // namespace weir::test
