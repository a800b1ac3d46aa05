// Where a request that somebody asks about belongs: as one that comes, and why.

#include "proxy/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weir {
namespace {

Rule rule(std::string name, std::vector<Match> matches) {
  Rule made;
  made.name = std::move(name);
  made.matches = std::move(matches);
  return made;
}

struct World {
  explicit World(std::vector<Rule> rules, std::vector<std::string> trust = {})
      : routes(std::move(rules), fallback(), TenantSource{}), trusted(trust) {
    upstreams.emplace_back().name = "main";
  }
  static Rule fallback() {
    Rule made = rule("default", {});
    return made;
  }
  Placement ask(const Question& question) const {
    return place(question, {routes, trusted, upstreams, EscapedSlashes::reject, limits});
  }
  std::string refusal(const Question& question) const {
    const Placement placed = ask(question);
    return placed.refusal ? std::to_string(status_of(placed.refusal->denial)) : "none";
  }

  Routes routes;
  TrustedProxies trusted;
  std::vector<UpstreamOptions> upstreams;
  http::Limits limits;
};

TEST(Placement, TakesTheCanonicalPathAndKeepsTheQueryForTheUpstream) {
  const Placement placed = World({}).ask({.target = "//a/./%62?x=1"});
  EXPECT_EQ(placed.counted, "/a/b");
  EXPECT_EQ(placed.forward, "/a/b?x=1");
  EXPECT_EQ(placed.resource, "/a/b");
}

TEST(Placement, SaysWhichPartOfEachRuleBeforeItsOwnARequestFails) {
  const World world({rule("paths", {{"/a/**", {}, ""}, {"/b", {}, ""}}),
                     rule("methods", {{"/x", {"POST"}, ""}}),
                     rule("hosts", {{"/x", {}, "h.example"}}),
                     rule("mixed", {{"/b", {}, ""}, {"/x", {"PUT"}, ""}}),
                     rule("own", {{"/x", {"GET"}, ""}}), rule("later", {})});
  const Placement placed = world.ask({.target = "/x", .host = "other"});
  EXPECT_EQ(world.routes.rule(placed.rule).name, "own");
  ASSERT_EQ(placed.passed_over.size(), 4u);
  using enum MatchPart;
  EXPECT_EQ(placed.passed_over[0].failed, (std::vector{path, path}));
  EXPECT_EQ(placed.passed_over[1].failed, (std::vector{method}));
  EXPECT_EQ(placed.passed_over[2].failed, (std::vector{host}));
  EXPECT_EQ(placed.passed_over[3].failed, (std::vector{path, method}));
}

// The index that requests are routed by and the parts that are looked at here must not disagree.
TEST(Placement, ARuleWithoutAFailedPartIsTheOneThatRequestsAreRoutedBy) {
  std::mt19937 random(7);
  const auto pick = [&random](std::vector<std::string> from) {
    return from[random() % from.size()];
  };
  const std::vector<std::string> hosts{"", "a.example", "B.example:80", "c.example."};
  for (int round = 0; round < 300; ++round) {
    std::vector<Rule> rules;
    for (int i = 0; i < 6; ++i) {
      std::vector<Match> matches;
      for (unsigned n = random() % 3; n > 0; --n) {
        std::vector<std::string> methods;
        if (random() % 2) methods.push_back(pick({"GET", "POST", "HEAD"}));
        matches.push_back({pick({"", "/a", "/a/*", "/a/**", "/*/b", "/**"}), methods,
                           pick({"", "a.example", "b.example"})});
      }
      rules.push_back(rule("r" + std::to_string(i), matches));
    }
    const World world(std::move(rules));
    const Question question{.method = pick({"GET", "HEAD", "POST", "PUT"}),
                            .target = pick({"/a", "/a/", "/a/b", "/a/b/c", "/x/b", "/"}),
                            .host = pick(hosts)};
    const Placement placed = world.ask(question);
    ASSERT_FALSE(placed.refusal) << placed.refusal->detail;
    for (const PassedOver& over : placed.passed_over) {
      const Rule& passed = world.routes.rule(&over - placed.passed_over.data());
      EXPECT_EQ(over.failed.size(), passed.matches.size()) << question.target << " " << over.rule;
      EXPECT_FALSE(over.failed.empty());
    }
    const Rule& found = world.routes.rule(placed.rule);
    if (found.matches.empty()) continue;
    const RequestFacts facts{question.method, placed.counted, question.host, "", {}};
    EXPECT_TRUE(std::ranges::any_of(
        found.matches, [&](const Match& match) { return !failed_part(match, facts); }));
  }
}

TEST(Placement, WhatNoRuleIsAskedAboutIsRefusedAsARequestWouldBe) {
  const World world({});
  EXPECT_EQ(world.refusal({.target = "/a%2Fb"}), "400");
  EXPECT_EQ(world.refusal({.target = "/../a"}), "400");
  EXPECT_EQ(world.refusal({.target = "/a b"}), "400");
  EXPECT_EQ(world.refusal({.method = "CONNECT", .target = "a:1"}), "405");
  EXPECT_EQ(world.refusal({.method = "NONSENSE", .target = "/"}), "400");
  EXPECT_EQ(world.refusal({.target = "/" + std::string(9000, 'a')}), "414");
  EXPECT_EQ(world.refusal({.target = "/", .host = "no host"}), "400");
  EXPECT_EQ(world.refusal({.target = "/", .host = "h", .fields = {{"Host", "i"}}}), "400");
  EXPECT_EQ(world.refusal({.target = "/", .fields = {{"Content-Length", "1,1"}}}), "400");
  EXPECT_EQ(world.refusal({.target = "/", .fields = {{"Expect", "magic"}}}), "417");
  EXPECT_EQ(world.refusal({.target = "/", .fields = {{"X", std::string(40000, 'x')}}}), "431");
  EXPECT_EQ(world.refusal({.target = "/"}), "none");
}

TEST(Placement, AQuestionCannotHoldASecondRequest) {
  EXPECT_EQ(World({}).refusal({.target = "/", .fields = {{"X", "1\r\n\r\nGET / HTTP/1.1"}}}),
            "400");
}

TEST(Placement, TheClientIsWhomATrustedProxyNames) {
  const Question question{.target = "/",
                          .client = *Address::parse("10.0.0.1"),
                          .fields = {{"X-Forwarded-For", "192.0.2.7"}}};
  EXPECT_EQ(World({}, {"10.0.0.0/8"}).ask(question).tenant, "192.0.2.7");
  EXPECT_EQ(World({}).ask(question).tenant, "10.0.0.1");
}

TEST(Placement, TheProjectIsReadAsTheUpstreamsCooldownReadsIt) {
  World world({});
  EXPECT_EQ(world.ask({.target = "/"}).project, "-");
  EXPECT_EQ(world.ask({.target = "/", .fields = {{"x-project", "blue"}}}).project, "blue");
}

}  // namespace
}  // namespace weir
