#include "proxy/route.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordination/base/sha256.h"

namespace weir {
namespace {

Rule rule(std::string name, std::vector<Match> matches, std::string resource = "{path}") {
  return {.name = std::move(name),
          .matches = std::move(matches),
          .resource = std::move(resource),
          .limit = {},
          .upstream = "main"};
}

const Rule fallback = rule("default", {});

// The name of the rule that takes the request.
std::string taken_by(const Routes& routes, const RequestFacts& facts) {
  std::string scratch;
  return routes.route(facts, scratch).rule->name;
}

RequestFacts get(std::string_view path, std::string_view host = {}) {
  return {.method = "GET", .path = path, .host = host, .client_ip = "192.0.2.1", .fields = {}};
}

// What a request counts for under a rule with this resource.
std::string resource(std::string text, const RequestFacts& facts, TenantSource tenant = {}) {
  const Routes routes({}, rule("default", {}, std::move(text)), std::move(tenant));
  std::string scratch;
  return std::string(routes.route(facts, scratch).resource);
}

TEST(Routes, TheFirstRuleThatMatchesWins) {
  const Routes routes({rule("one", {{"/a/b", {}, ""}}), rule("two", {{"/a/*", {}, ""}}),
                       rule("three", {{"/a/**", {}, ""}, {"/z", {}, ""}}),
                       rule("never", {{"/a/c", {}, ""}}), rule("host", {{"", {}, "h"}})},
                      fallback, {});
  EXPECT_EQ(taken_by(routes, get("/a/b")), "one");
  EXPECT_EQ(taken_by(routes, get("/a/c")), "two");
  EXPECT_EQ(taken_by(routes, get("/a/c/d")), "three");
  EXPECT_EQ(taken_by(routes, get("/a")), "three");
  EXPECT_EQ(taken_by(routes, get("/z")), "three");
  EXPECT_EQ(taken_by(routes, get("/a/b", "h")), "one");
  EXPECT_EQ(taken_by(routes, get("/y", "h")), "host");
  EXPECT_EQ(taken_by(routes, get("/y")), "default");
}

TEST(Routes, WhereNoRuleMatchesTheDefaultDoes) {
  const Routes routes({rule("a", {{"/a", {}, ""}})}, fallback, {});
  std::string scratch;
  const Routed none = routes.route(get("/b"), scratch);
  EXPECT_EQ(none.rule_index, routes.size());
  EXPECT_EQ(none.rule, &routes.rule(routes.size()));
  EXPECT_EQ(none.resource, "/b");
  const Routed found = routes.route(get("/a"), scratch);
  EXPECT_EQ(found.rule_index, 0u);
  EXPECT_EQ(found.rule, &routes.rule(0));
}

TEST(Routes, ARuleWithoutMatchTakesEverything) {
  const Routes routes(
      {rule("a", {{"/a", {}, ""}}), rule("all", {}), rule("late", {{"/b", {}, ""}})}, fallback, {});
  EXPECT_EQ(taken_by(routes, get("/a")), "a");
  EXPECT_EQ(taken_by(routes, get("/b")), "all");
  EXPECT_EQ(taken_by(routes, get("*")), "all");
}

TEST(Routes, TheAsteriskOfOptionsIsNoPath) {
  const Routes routes({rule("paths", {{"/**", {}, ""}}), rule("segment", {{"/*", {}, ""}})},
                      fallback, {});
  EXPECT_EQ(taken_by(routes, get("*")), "default");
  EXPECT_EQ(resource("{path}", get("*")), "*");
  EXPECT_EQ(resource("{segment:1}", get("*")), "-");
}

TEST(Routes, MethodsAreExactButHeadIsGet) {
  const Routes routes(
      {rule("get", {{"/a", {"POST", "GET"}, ""}}), rule("head", {{"/b", {"HEAD"}, ""}})}, fallback,
      {});
  const auto by = [&](std::string_view method, std::string_view path) {
    RequestFacts facts = get(path);
    facts.method = method;
    return taken_by(routes, facts);
  };
  EXPECT_EQ(by("GET", "/a"), "get");
  EXPECT_EQ(by("HEAD", "/a"), "get");
  EXPECT_EQ(by("POST", "/a"), "get");
  EXPECT_EQ(by("get", "/a"), "default");
  EXPECT_EQ(by("PUT", "/a"), "default");
  EXPECT_EQ(by("HEAD", "/b"), "head");
  EXPECT_EQ(by("GET", "/b"), "default");
}

TEST(Routes, AMethodOverrideFieldChangesNothing) {
  const Routes routes({rule("delete", {{"", {"DELETE"}, ""}})}, fallback, {});
  const http::Field fields[] = {{"X-HTTP-Method-Override", "DELETE"}};
  RequestFacts facts = get("/a");
  facts.fields = fields;
  EXPECT_EQ(taken_by(routes, facts), "default");
}

TEST(Routes, HostsAreComparedWithoutCasePortAndFinalDot) {
  const Routes routes({rule("h", {{"", {}, "api.example"}}), rule("six", {{"", {}, "[::1]"}})},
                      fallback, {});
  for (const std::string_view host :
       {"api.example", "API.Example", "api.example:8080", "api.example.", "Api.Example.:80"}) {
    EXPECT_EQ(taken_by(routes, get("/", host)), "h") << host;
    EXPECT_EQ(resource("{host}", get("/", host)), "api.example") << host;
  }
  EXPECT_EQ(taken_by(routes, get("/", "[::1]:80")), "six");
  EXPECT_EQ(taken_by(routes, get("/", "x.api.example")), "default");
  EXPECT_EQ(taken_by(routes, get("/", "")), "default");
}

TEST(Routes, PathsAreComparedWithTheirCase) {
  const Routes routes({rule("a", {{"/a", {}, ""}})}, fallback, {});
  EXPECT_EQ(taken_by(routes, get("/A")), "default");
}

TEST(Routes, PatternsAreCanonicalToo) {
  const Routes routes({rule("a", {{"//x/../%61/%2a", {}, ""}})}, fallback, {});
  EXPECT_EQ(taken_by(routes, get("/a/%2A")), "a");
}

TEST(Routes, MalformedRulesAreRefused) {
  EXPECT_THROW(Routes({rule("a", {{"a", {}, ""}})}, fallback, {}), std::invalid_argument);
  EXPECT_THROW(Routes({rule("a", {}, "{nothing}")}, fallback, {}), std::invalid_argument);
}

TEST(Resource, IsWhatTheTemplateSays) {
  const http::Field fields[] = {{"Accept", "*/*"}, {"X-Key", "k1"}, {"x-empty", ""}};
  const RequestFacts facts{.method = "POST",
                           .path = "/v1/users/42/",
                           .host = "H:1",
                           .client_ip = "192.0.2.1",
                           .fields = fields};
  const std::pair<std::string, std::string_view> cases[] = {
      {"{path}", "/v1/users/42/"},
      {"{method}", "POST"},
      {"{host}", "h"},
      {"{header:x-key}", "k1"},
      {"{header:X-KEY}", "k1"},
      {"{header:x-none}", "-"},
      {"{header:x-empty}", "-"},
      {"{segment:1}", "v1"},
      {"{segment:3}", "42"},
      {"{segment:4}", "-"},
      {"{segment:5}", "-"},
      {"{tenant}", "192.0.2.1"},
      {"everything", "everything"},
      {"{method} {path}", "POST /v1/users/42/"},
      {"a{segment:1}b{header:x-key}{host}c{tenant}", "av1bk1hc192.0.2.1"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(resource(text, facts), expected) << text;
}

TEST(Resource, OfHeadIsThatOfGet) {
  RequestFacts facts = get("/a");
  facts.method = "HEAD";
  EXPECT_EQ(resource("{method}:{path}", facts), resource("{method}:{path}", get("/a")));
}

TEST(Resource, IsNotChangedByAFieldSentTwice) {
  const http::Field twice[] = {{"X-Key", "k1"}, {"x-key", "k2"}};
  const http::Field first_empty[] = {{"X-Key", ""}, {"x-key", "k2"}};
  RequestFacts facts = get("/a");
  facts.fields = twice;
  EXPECT_EQ(resource("{header:x-key}", facts), "-");
  facts.fields = first_empty;
  EXPECT_EQ(resource("{header:x-key}", facts), "-");
}

TEST(Resource, APathIsNotCopied) {
  const Routes routes({}, fallback, {});
  std::string scratch = "untouched";
  const RequestFacts facts = get("/a/b");
  EXPECT_EQ(routes.route(facts, scratch).resource.data(), facts.path.data());
  EXPECT_EQ(scratch, "untouched");
}

TEST(Resource, ALongNameIsCountedByItsDigest) {
  const auto hashed = [](std::string_view name) {
    const auto digest = sha256_hex(name);
    return "sha256:" + std::string(digest.begin(), digest.end());
  };
  const std::string fits = "/" + std::string(1023, 'a');
  const std::string longer = fits + "a";
  EXPECT_EQ(resource("{path}", get(fits)), fits);
  EXPECT_EQ(resource("{path}", get(longer)), hashed(longer));
  EXPECT_EQ(resource("x{path}", get(fits)), hashed("x" + fits));
  EXPECT_EQ(resource("{path}{path}", get(longer)), hashed(longer + longer));
}

TEST(Resource, NobodyCanAskForTheDigestOfAnother) {
  const std::string victim = resource("{path}", get("/" + std::string(2000, 'a')));
  const http::Field fields[] = {{"x-key", victim}};
  RequestFacts facts = get("/a");
  facts.fields = fields;
  const std::string claimed = resource("{header:x-key}", facts);
  EXPECT_NE(claimed, victim);
  EXPECT_TRUE(claimed.starts_with("sha256:"));
}

TEST(Resource, ATemplateMustBeWellFormed) {
  for (const std::string_view text :
       {"", "{", "}", "a}b", "{path", "{}", "{Path}", "{path:1}", "{header}", "{header:}",
        "{segment}", "{segment:}", "{segment:0}", "{segment:-1}", "{segment:1x}", "{{path}}",
        "{segment:99999999999}"}) {
    EXPECT_NE(check_template(text), "") << text;
  }
  for (const std::string_view text : {"{path}", "x", "{header:a}-{segment:10}{tenant}"}) {
    EXPECT_EQ(check_template(text), "") << text;
  }
}

std::string tenant_of(const TenantSource& source, const RequestFacts& facts) {
  std::string scratch;
  return std::string(tenant(source, facts, scratch));
}

TEST(Tenant, OfIPv6IsTheSlash64AndOfIPv4TheAddress) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"192.0.2.1", "192.0.2.1"},
      {"::ffff:192.0.2.1", "192.0.2.1"},
      {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
      {"2001:db8:1:2:ffff::", "2001:db8:1:2::/64"},
      {"2001:db8:1:3::", "2001:db8:1:3::/64"},
      {"::1", "::/64"},
      {"", "-"},
      {"no:address", "-"}};
  for (const auto& [ip, expected] : cases) {
    RequestFacts facts = get("/a");
    facts.client_ip = ip;
    EXPECT_EQ(tenant_of({}, facts), expected) << ip;
    EXPECT_EQ(resource("{tenant}", facts), expected) << ip;
    EXPECT_EQ(resource("<{tenant}>", facts), "<" + std::string(expected) + ">") << ip;
  }
}

TEST(Tenant, MayBeAFieldOrASegment) {
  const TenantSource field{TenantSource::Kind::header, "x-tenant", 0};
  const TenantSource segment{TenantSource::Kind::segment, "", 2};
  const std::string long_name(1025, 't');
  const http::Field fields[] = {{"X-Tenant", "acme"}};
  const http::Field long_fields[] = {{"X-Tenant", long_name}};
  RequestFacts facts = get("/v1/beta/x");
  EXPECT_EQ(tenant_of(field, facts), "-");
  EXPECT_EQ(tenant_of(segment, facts), "beta");
  EXPECT_EQ(tenant_of(segment, get("/v1")), "-");
  facts.fields = fields;
  EXPECT_EQ(tenant_of(field, facts), "acme");
  EXPECT_EQ(resource("{tenant}{path}", facts, field), "acme/v1/beta/x");
  facts.fields = long_fields;
  EXPECT_EQ(tenant_of(field, facts).size(), 7u + 64u);

  const Routes routes({}, fallback, segment);
  std::string scratch;
  EXPECT_EQ(routes.tenant(facts, scratch), "beta");
}

// What the index must agree with: the rules one by one, segments compared by recursion.
bool naive_path(std::vector<std::string> pattern, std::vector<std::string> path) {
  if (pattern.empty()) return path.empty();
  if (pattern.front() == "**") return true;
  if (path.empty()) return false;
  const bool same =
      pattern.front() == "*" ? !path.front().empty() : pattern.front() == path.front();
  return same && naive_path({pattern.begin() + 1, pattern.end()}, {path.begin() + 1, path.end()});
}

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> segments;
  for (const char c : path) {
    if (c == '/') {
      segments.emplace_back();
    } else {
      segments.back() += c;
    }
  }
  return segments;
}

bool naive_match(const Match& match, const RequestFacts& facts) {
  std::string host(facts.host);
  std::ranges::transform(host, host.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string method = facts.method == "HEAD" ? "GET" : std::string(facts.method);
  return (match.path.empty() || naive_path(split(match.path), split(std::string(facts.path)))) &&
         (match.methods.empty() ||
          std::ranges::find(match.methods, method) != match.methods.end()) &&
         (match.host.empty() || match.host == host);
}

std::size_t naive_route(const std::vector<Rule>& rules, const RequestFacts& facts) {
  const auto matches = [&](const Match& match) { return naive_match(match, facts); };
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].matches.empty() || std::ranges::any_of(rules[i].matches, matches)) return i;
  }
  return rules.size();
}

class RandomRules {
 public:
  explicit RandomRules(unsigned seed) : random_(seed) {}

  std::string path(std::vector<std::string> segments) {
    std::string result;
    for (int i = below(4); i >= 0; --i) result += "/" + pick(segments);
    return below(5) == 0 ? result + "/" : result;
  }

  Match match() {
    Match result;
    if (below(10) > 0) {
      result.path = path({"a", "b", "c", "*"});
      if (!result.path.ends_with('/') && below(5) == 0) result.path += "/**";
    }
    if (below(3) == 0) result.methods = {pick({"GET", "POST"})};
    if (below(3) == 0) result.methods.push_back("PUT");
    if (below(4) == 0 || result.path.empty()) result.host = pick({"h", "i"});
    return result;
  }

  std::vector<Rule> rules() {
    std::vector<Rule> result;
    for (int i = below(30); i > 0; --i) {
      result.push_back(rule("r" + std::to_string(i), {match()}));
      while (below(4) == 0) result.back().matches.push_back(match());
    }
    if (below(20) == 0) result.push_back(rule("all", {}));
    return result;
  }

  std::string pick(const std::vector<std::string>& from) {
    return from[below(static_cast<int>(from.size()))];
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  std::mt19937 random_;
};

TEST(Routes, FindWhatGoingThroughTheRulesWouldFind) {
  RandomRules random(20240607);
  std::size_t by_rule = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::vector<Rule> rules = random.rules();
    const Routes routes(rules, fallback, {});
    for (int request = 0; request < 50; ++request) {
      const std::string path = random.path({"a", "b", "c", "d"});
      const std::string host = random.pick({"h", "I", "j", ""});
      const std::string method = random.pick({"GET", "POST", "PUT", "HEAD"});
      RequestFacts facts = get(path, host);
      facts.method = method;
      std::string scratch;
      const std::size_t expected = naive_route(rules, facts);
      ASSERT_EQ(routes.route(facts, scratch).rule_index, expected)
          << round << " " << method << " " << host << path;
      by_rule += expected < rules.size();
    }
  }
  EXPECT_GT(by_rule, 10'000u);  // or the rules were too narrow to say anything
  EXPECT_LT(by_rule, 45'000u);
}

}  // namespace
}  // namespace weir
