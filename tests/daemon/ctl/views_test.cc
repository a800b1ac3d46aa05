// Pages as a person reads them, and the live view.

#include "daemon/ctl/views.h"

#include <gtest/gtest.h>

#include "coordination/window.h"
#include "daemon/ctl/top_frame.h"

namespace weir::ctl {
namespace {

using namespace std::chrono_literals;

const WallTime kNow = *parse_utc("2026-11-18T05:04:48Z");

Json resource(const std::string& name, int used, int limit) {
  return {{"name", name},
          {"rule", "default"},
          {"used", used},
          {"limit", limit},
          {"waiting", 3},
          {"in_hand", 1},
          {"window", "2026-11-18T05:04:00Z"}};
}

TEST(Views, ResourcesAreATableWithBars) {
  const Json page{{"resources", Json::array({resource("/a", 5, 10)})}};
  EXPECT_EQ(show_resources(page, Glyphs::ascii),
            "RESOURCE  RULE                           USED  LIMIT  IN HAND  WAITING  WINDOW\n"
            "/a        default  ##########..........     5     10        1        3  "
            "2026-11-18T05:04:00Z\n");
  EXPECT_EQ(show_resources(Json{{"resources", Json::array()}}, Glyphs::ascii),
            "nobody has asked for a resource yet\n");
}

TEST(Views, OneResourceIsShownWithItsClaimsAndWhenMoreComes) {
  Json one = resource("/a", 5, 10);
  one["claims"] = {{"r1", 2}, {"r2", 3}};
  one["next_free"] = "2026-11-18T05:05:00.000Z";
  const std::string text = show_resource(Json{{"resources", Json::array({one})}}, kNow);
  EXPECT_NE(text.find("used        5 of 10\n"), std::string::npos) << text;
  EXPECT_NE(text.find("next free   2026-11-18T05:05:00.000Z, in 12 s\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("claims      r1 has 2, r2 has 3\n"), std::string::npos) << text;
}

TEST(Views, WhatAnOlderDaemonDoesNotSayIsNoError) {
  for (const Json& page : {Json::object(), Json::array(), Json("text"), Json()}) {
    EXPECT_NE(show_status(page, kNow), "");
    EXPECT_NE(show_replicas(page), "");
    EXPECT_NE(show_upstreams(page, kNow), "");
    EXPECT_NE(show_explain(page, kNow), "");
    EXPECT_NE(show_resources(page, Glyphs::ascii), "");
    EXPECT_EQ(show_resource(page, kNow), "");
  }
}

TEST(Views, NamesThatClientsMadeUpCannotDriveTheTerminal) {
  const Json page{{"resources", Json::array({resource("/\x1b[2J", 1, 2)})}};
  for (const std::string& text : {show_resources(page, Glyphs::ascii), show_resource(page, kNow)}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_NE(text.find("/?[2J"), std::string::npos);
  }
}

TEST(Views, ExplainSaysFirstWhatHappensAndThenWhy) {
  const Json page{
      {"request", {{"method", "GET"}, {"target", "/x?y"}}},
      {"prospect", {{"what", "wait"}, {"wait_ms", 11001}, {"text", "waits for a unit"}}},
      {"path", {{"counted", "/x"}, {"forwarded", "/x?y"}}},
      {"rule",
       {{"name", "own"},
        {"passed_over", Json::array({{{"name", "a"}, {"differs", {"path", "method"}}}})}}},
      {"upstream",
       {{"name", "main"},
        {"cooldown", {{"enabled", true}, {"project", "p"}, {"held", true}, {"probing", true}}},
        {"retries", {{"policy", "none"}, {"because", "retries: false"}}}}}};
  const std::string text = show_explain(page, kNow);
  EXPECT_TRUE(text.starts_with("GET /x?y waits for a unit (in 12 s)\n\n")) << text;
  EXPECT_NE(text.find("rule        own; not a (path, method)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("cooldown    a probe is under way; project p\n"), std::string::npos) << text;
  EXPECT_NE(text.find("retries     none: retries: false\n"), std::string::npos) << text;
}

Snapshot snapshot(SteadyTime at, double ok) {
  Snapshot made;
  made.at = {at, kNow};
  made.status = {{"version", "1"},
                 {"replica", "r1"},
                 {"ready", true},
                 {"since", "2026-11-18T05:04:40Z"},
                 {"store", {{"kind", "etcd"}, {"up", true}}}};
  Json list = Json::array();
  for (int i = 0; i < 50; ++i) list.push_back(resource("/resource/" + std::to_string(i), i, 100));
  made.resources = {{"resources", list}};
  made.upstreams = {{"upstreams", Json::array({{{"name", "main"}}})}};
  made.requests = {{"ok", ok}, {"limit", 7}};
  return made;
}

TEST(TopFrame, FitsTheScreenWhateverItsSize) {
  const Snapshot now = snapshot(SteadyTime{10s}, 100);
  for (const std::size_t width : {1u, 20u, 80u, 200u}) {
    for (const std::size_t height : {1u, 5u, 24u, 100u}) {
      const auto lines = top_frame(now, nullptr, {width, height, Glyphs::unicode});
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LE(width_of(line), width) << line;
    }
  }
}

TEST(TopFrame, ShowsRatesSinceTheLastLook) {
  const Snapshot last = snapshot(SteadyTime{10s}, 100), now = snapshot(SteadyTime{12s}, 150);
  EXPECT_EQ(top_frame(now, nullptr, {80, 24, Glyphs::ascii}).at(1), "requests/s  -");
  EXPECT_EQ(top_frame(now, &last, {80, 24, Glyphs::ascii}).at(1), "requests/s  25  ok 25");
}

TEST(TopFrame, ARestartIsNoNegativeRate) {
  const Snapshot last = snapshot(SteadyTime{10s}, 100), now = snapshot(SteadyTime{12s}, 5);
  EXPECT_EQ(top_frame(now, &last, {80, 24, Glyphs::ascii}).at(1), "requests/s  0.0");
}

TEST(Views, ARateIsPerBucketButOfSfbItIsWhatMayBeUnderWay) {
  const auto throttle = [](const char* kind, int buckets) {
    return Json{{"kind", kind}, {"rate", 7.0}, {"buckets", buckets}};
  };
  EXPECT_EQ(rate_text(throttle("aimd", 1)), "7.0");
  EXPECT_EQ(rate_text(throttle("sfq", 17)), "7.0 in each of 17 buckets");
  EXPECT_EQ(rate_text(throttle("sfb", 51)), "7.0 under way");
}

TEST(TopFrame, SaysWhyThereIsNothingToShow) {
  Snapshot now;
  now.fault = "no answer from 127.0.0.1:1: Connection refused";
  EXPECT_EQ(top_frame(now, nullptr, {}).at(1), now.fault);
}

TEST(TopFrame, RequestsAreSummedOverRulesByOutcome) {
  const auto sums = requests_by_outcome(
      "# TYPE weir_requests_total counter\n"
      "weir_requests_total{rule=\"a\",outcome=\"ok\"} 2\n"
      "weir_requests_total{rule=\"b\",outcome=\"ok\"} 3\n"
      "weir_requests_total{rule=\"b\",outcome=\"limit\"} 1e3\n"
      "weir_requests_totally{rule=\"b\",outcome=\"ok\"} 3\n"
      "weir_up 1");
  EXPECT_EQ(sums, (std::map<std::string, double>{{"ok", 5}, {"limit", 1000}}));
}

}  // namespace
}  // namespace weir::ctl
