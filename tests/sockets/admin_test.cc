// The admin address and the logs: what an operator sees.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/answers.h"
#include "tests/support/eventually.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

using nlohmann::json;

class Admin : public testing::Test {
 protected:
  FakeUpstream upstream_{serve(answer(200, "from the upstream"))};
  WeirdProcess weird_{
      Config{.servers = {upstream_.url()},
             .rest = "rules:\n"
                     "  - {name: reports, match: {path: /reports/*}, unlimited: true}"}};
};

TEST_F(Admin, LivezAnswers200AndReadyzSoonAfter) {
  EXPECT_EQ(weird_.admin("/livez").status, 200);
  eventually("it is ready", [&] { return weird_.admin("/readyz").status == 200; });
}

TEST_F(Admin, ItsPathsAreTheUpstreamsOnTheOtherPort) {
  for (const char* path : {"/livez", "/metrics", "/v1/config"}) {
    EXPECT_EQ(get(weird_.port(), path).body, "from the upstream");
  }
}

TEST_F(Admin, MetricsArePrometheusText) {
  const Answer metrics = weird_.admin("/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_TRUE(metrics.fields.get("Content-Type").starts_with("text/plain"));
  EXPECT_NE(metrics.body.find("# TYPE weir_requests_total counter\n"), std::string::npos);
  EXPECT_EQ(weird_.metric("weir_build_info"), 1);
}

TEST_F(Admin, RequestsAreCountedByRuleAndOutcome) {
  get(weird_.port(), "/reports/1");
  get(weird_.port(), "/reports/2");
  get(weird_.port(), "/elsewhere");
  RawClient bad(weird_.port());
  bad.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(bad.read_answer().status, 400);
  weird_.wait_for_metric("weir_requests_total", {{"rule", "reports"}, {"outcome", "ok"}}, 2);
  weird_.wait_for_metric("weir_requests_total", {{"rule", "default"}, {"outcome", "ok"}}, 1);
  weird_.wait_for_metric("weir_requests_total", {{"outcome", "malformed"}}, 1);
  EXPECT_EQ(weird_.metric("weir_requests_total", {{"outcome", "ok"}}), 3);
}

TEST(AdminCounts, UpstreamTroubleByItsReason) {
  FakeUpstream upstream(in_turn({send_and_close(""), send_and_stall("")}));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = "response_timeout: 200ms"});
  EXPECT_EQ(get(weird.port(), "/").status, 502);
  EXPECT_EQ(get(weird.port(), "/").status, 504);
  upstream.refuse();
  EXPECT_EQ(get(weird.port(), "/").status, 502);
  for (const char* reason : {"upstream_failed", "upstream_timeout", "upstream_unreachable"}) {
    weird.wait_for_metric("weir_requests_total", {{"rule", "default"}, {"outcome", reason}}, 1);
  }
}

TEST_F(Admin, NoPathHostOrClientEverBecomesALabel) {
  RawClient client(weird_.port());
  client.send(
      lines({"GET /reports/marker-path HTTP/1.1", "Host: marker-host", "X-Tenant: marker-tenant"}));
  client.read_answer();
  client.get("/marker-path");
  weird_.wait_for_metric("weir_requests_total", {{"outcome", "ok"}}, 2);
  const std::string metrics = weird_.admin("/metrics").body;
  EXPECT_EQ(metrics.find("marker"), std::string::npos);
  EXPECT_EQ(metrics.find("127.0.0.1"), std::string::npos);
}

TEST_F(Admin, TheEffectiveConfigurationIsShownWithItsDefaults) {
  const Answer answer = weird_.admin("/v1/config");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.fields.get("Content-Type").starts_with("application/json"));
  const json config = json::parse(answer.body);
  EXPECT_EQ(config.at("upstreams").at("main").at("servers").at(0), upstream_.url());
  EXPECT_EQ(config.at("rules").at(0).at("name"), "reports");
  EXPECT_EQ(config.at("limits").at("header_fields"), 100);
  EXPECT_EQ(config.at("escaped_slashes"), "reject");
}

TEST_F(Admin, StatusIsAJsonObject) {
  const Answer answer = weird_.admin("/v1/status");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(json::parse(answer.body).is_object());
}

TEST_F(Admin, AnUnknownPathIs404WithJson) {
  const Answer answer = weird_.admin("/v1/nothing");
  EXPECT_EQ(answer.status, 404);
  EXPECT_NE(answer.fields.get("Content-Type").find("json"), std::string::npos);
  EXPECT_TRUE(json::parse(answer.body).is_object());
}

TEST_F(Admin, GarbageDoesNotHarmIt) {
  for (const std::string& garbage : {std::string("\x16\x03\x01\r\n\r\n"), std::string(1 << 20, 'x'),
                                     std::string("GET /livez HTTP/1.1\r\nA\r\n\r\n")}) {
    RawClient client(weird_.admin_port());
    client.send_until_stuck(garbage, 200ms);
    client.finish_sending();
    client.wait_for_end();
  }
  EXPECT_EQ(weird_.admin("/livez").status, 200);
}

std::vector<std::string> lines_with(const std::string& text, const std::string& marker) {
  std::istringstream in(text);
  std::vector<std::string> found;
  for (std::string line; std::getline(in, line);) {
    if (line.find(marker) != std::string::npos) found.push_back(line);
  }
  return found;
}

TEST_F(Admin, TheAccessLogIsOffByDefault) {
  get(weird_.port(), "/marker");
  weird_.wait_for_metric("weir_requests_total", {{"outcome", "ok"}}, 1);
  EXPECT_TRUE(lines_with(weird_.log() + weird_.standard_output(), "/marker").empty());
}

TEST(AccessLog, IsOneLineOfTextPerRequest) {
  FakeUpstream upstream(serve(answer(203, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}, .rest = "log: {access: true, format: text}"});
  RawClient client(weird.port());
  client.get("/marker-1");
  client.get("/marker-2");
  ASSERT_TRUE(weird.wait_for_log("/marker-2"));
  const auto entries = lines_with(weird.log(), "/marker-");
  ASSERT_EQ(entries.size(), 2u);
  for (const char* part : {"GET", "/marker-1", "203"}) {
    EXPECT_NE(entries[0].find(part), std::string::npos) << entries[0];
  }
}

TEST(AccessLog, IsOneJsonObjectPerRequestIfAskedFor) {
  FakeUpstream upstream(serve(answer(203, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}, .rest = "log: {access: true, format: json}"});
  get(weird.port(), "/marker");
  ASSERT_TRUE(weird.wait_for_log("/marker"));
  weird.signal(SIGTERM);
  ASSERT_TRUE(weird.wait_for_exit());
  std::istringstream all(weird.log());
  for (std::string line; std::getline(all, line);) {
    EXPECT_TRUE(json::parse(line, nullptr, false).is_object()) << "not a JSON object: " << line;
  }
  const auto entries = lines_with(weird.log(), "/marker");
  ASSERT_EQ(entries.size(), 1u);
  const json entry = json::parse(entries[0]);
  const auto has = [&](const json& wanted) {
    return std::any_of(entry.begin(), entry.end(),
                       [&](const json& value) { return value == wanted; });
  };
  EXPECT_TRUE(has("GET")) << entries[0];
  EXPECT_TRUE(has("/marker")) << entries[0];
  EXPECT_TRUE(has(203)) << entries[0];
}

TEST(AccessLog, DoesNotDependOnTheLevel) {
  FakeUpstream upstream(serve(answer(203, "ok")));
  const Config quiet{.servers = {upstream.url()}, .rest = "log: {level: off, access: true}"};
  WeirdProcess weird({.servers = {upstream.url()}});
  weird.write_config(quiet);
  weird.wait_for_metric("weir_config_reloads_total", {{"result", "ok"}}, 1);
  get(weird.port(), "/marker");
  EXPECT_TRUE(weird.wait_for_log("/marker"));
  EXPECT_TRUE(lines_with(weird.log(), "taken over").empty()) << "said at level info";
}

TEST(AccessLog, TellsOfRequestsThatWereRefusedForTheirHead) {
  FakeUpstream upstream(serve(answer(203, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}, .rest = "log: {access: true}"});
  const auto entry = [&](const std::string& request, const std::string& marker) {
    RawClient client(weird.port());
    client.send(request);
    client.read_answer();
    EXPECT_TRUE(weird.wait_for_log(marker));
    return lines_with(weird.log(), marker).at(0);
  };
  const std::string tunnel =
      entry(lines({"CONNECT marker-1:80 HTTP/1.1", "Host: h"}), "status=405");
  EXPECT_NE(tunnel.find("method=CONNECT target=marker-1:80"), std::string::npos) << tunnel;
  const std::string expecting =
      entry(lines({"PUT /marker-2 HTTP/1.1", "Host: h", "Expect: x"}), "status=417");
  EXPECT_NE(expecting.find("method=PUT target=/marker-2"), std::string::npos) << expecting;
  const std::string two =
      entry(lines({"GET /marker-3 HTTP/1.1", "Host: h", "Host: i"}), "status=400");
  EXPECT_NE(two.find("method=GET target=/marker-3"), std::string::npos) << two;
}

TEST(AccessLog, NothingAClientSendsCanForgeALine) {
  for (const std::string format : {"text", "json"}) {
    FakeUpstream upstream(serve(answer(200, "ok")));
    WeirdProcess weird(
        {.servers = {upstream.url()}, .rest = "log: {access: true, format: " + format + "}"});
    RawClient client(weird.port());
    client.send(lines({"GET /marker%0d%0aforged\"quoted' HTTP/1.1", "Host: h",
                       "User-Agent: marker \"quoted\" \\ \t\xff\xfe\x80", "Referer: marker\xc3\x28",
                       "X-Forwarded-For: marker\t\"x\""}));
    EXPECT_EQ(client.read_answer().status, 200);
    EXPECT_EQ(client.get("/end-marker").status, 200);
    ASSERT_TRUE(weird.wait_for_log("/end-marker"));
    const auto entries = lines_with(weird.log(), "marker");
    EXPECT_EQ(entries.size(), 2u) << weird.log();
    if (format == "json") {
      EXPECT_TRUE(json::parse(entries[0], nullptr, false).is_object()) << entries[0];
    }
    const bool printable = std::all_of(entries[0].begin(), entries[0].end(), [](char c) {
      return static_cast<unsigned char>(c) >= 0x20;
    });
    EXPECT_TRUE(printable) << "control bytes in the log: " << entries[0];
  }
}

}  // namespace
}  // namespace weir::test
