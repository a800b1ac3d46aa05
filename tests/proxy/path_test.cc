#include "proxy/path.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weir {
namespace {

struct Result {
  std::string forward, counted, authority;
  bool operator==(const Result&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Result& result) {
  return out << result.forward << " counted as " << result.counted << " at " << result.authority;
}

const Result refused{"400", "400", ""};

Result canonical(std::string_view target, EscapedSlashes slashes = EscapedSlashes::reject,
                 std::string_view method = "GET") {
  std::string scratch;
  const CanonicalTarget result = canonical_target(method, target, slashes, scratch);
  if (const auto* bad = std::get_if<BadTarget>(&result)) {
    EXPECT_FALSE(bad->why.empty());
    return refused;
  }
  const Target& good = std::get<Target>(result);
  return {std::string(good.forward), std::string(good.counted), std::string(good.authority)};
}

std::string counted(std::string_view target) { return canonical(target).counted; }

TEST(Path, SpellingsOfOneResourceCountAsOne) {
  for (const std::string_view spelling :
       {"/a", "//a", "///a", "/./a", "/b/../a", "/%61", "/a;x=1", "/a;", "/a?x", "/a?",
        "http://h/a", "HTTPS://h:443//a", "/%2e/a", "/%2E/a", "/b/%2e%2e/a", "/b/.%2E/a",
        "/b/c/../../a", "/b//../a", "/b;x/../a"}) {
    EXPECT_EQ(counted(spelling), "/a") << spelling;
  }
}

TEST(Path, WhatMayBeAnotherResourceUpstreamIsOneHere) {
  const std::pair<std::string_view, std::string_view> own[] = {
      {"/a/", "/a/"},           {"/A", "/A"},
      {"/a%20", "/a%20"},       {"/a%3bx", "/a%3Bx"},
      {"/%c0%af", "/%C0%AF"},   {"/%252e", "/%252e"},
      {"/%252E/a", "/%252E/a"}, {"/%252e%252e/a", "/%252e%252e/a"},
      {"/...", "/..."},         {"/.a/..b/c..", "/.a/..b/c.."},
      {"/a%3f", "/a%3F"},       {"/a%23", "/a%23"}};
  for (const auto& [target, expected] : own) EXPECT_EQ(counted(target), expected) << target;
}

TEST(Path, WhatUpstreamsReadDifferentlyIsRefused) {
  for (const std::string_view target :
       {"/a%00", "/a#x", "/xyz/.%00../a", "/a%2f", "/a%2F", "/a%5c", "/a%5C", "/a\\..\\a",
        "/a/..%2fa", "/../a", "/..", "/a/../..", "/%2e%2e", "//..", "/./..", "/a/../../a"}) {
    EXPECT_EQ(canonical(target), refused) << target;
  }
}

TEST(Path, BytesThatNoTargetMayHoldAreRefusedAnywhere) {
  for (int c = 0; c < 256; ++c) {
    const bool allowed = c > 0x20 && c < 0x7f && c != '#' && c != '%';
    const std::string byte(1, static_cast<char>(c));
    EXPECT_EQ(canonical("/a?" + byte) != refused, allowed) << c;
    EXPECT_EQ(canonical("/a;" + byte) != refused, allowed && c != '\\') << c;
    EXPECT_EQ(canonical("/a" + byte) != refused, allowed && c != '\\') << c;
    EXPECT_EQ(canonical("/a//b?" + byte) != refused, allowed) << c;
  }
}

TEST(Path, AMalformedEscapeIsRefusedAlsoInTheQuery) {
  for (const std::string_view escape : {"%", "%2", "%g0", "%0g", "%%20", "%-1", "%+1", "% 1"}) {
    for (const std::string_view place : {"/", "/a/", "/a?", "/a//?", "http://h/", "http://h/?"}) {
      const std::string target = std::string(place) + std::string(escape);
      EXPECT_EQ(canonical(target), refused) << target;
      EXPECT_EQ(canonical(target + "/a"), refused) << target << "/a";
    }
  }
  // The bytes behind the target belong to somebody else.
  EXPECT_EQ(canonical(std::string_view("/a%20").substr(0, 4)), refused);
  EXPECT_EQ(canonical(std::string_view("/a?%20").substr(0, 5)), refused);
}

TEST(Path, EveryEscapeHasOneSpelling) {
  constexpr std::string_view unreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  for (int c = 1; c < 256; ++c) {
    char lower[8], upper[8];
    std::snprintf(lower, sizeof lower, "/x%%%02x", c);
    std::snprintf(upper, sizeof upper, "/x%%%02X", c);
    const bool decoded = unreserved.find(static_cast<char>(c)) != std::string_view::npos;
    Result expected = {decoded ? "/x" + std::string(1, static_cast<char>(c)) : upper, "", ""};
    expected.counted = expected.forward;
    EXPECT_EQ(canonical(lower, EscapedSlashes::keep), expected) << lower;
    EXPECT_EQ(canonical(upper, EscapedSlashes::keep), expected) << upper;
    const bool slash = c == '/' || c == '\\';
    EXPECT_EQ(canonical(lower), slash ? refused : expected) << lower;
    EXPECT_EQ(canonical(upper), slash ? refused : expected) << upper;
  }
  EXPECT_EQ(canonical("/x%00", EscapedSlashes::keep), refused);
}

TEST(Path, DotSegmentsAreRemovedAsRfc3986Says) {
  const std::pair<std::string_view, std::string_view> cases[] = {{"/", "/"},
                                                                 {"/.", "/"},
                                                                 {"/./", "/"},
                                                                 {"/a/.", "/a/"},
                                                                 {"/a/..", "/"},
                                                                 {"/a/../", "/"},
                                                                 {"/a/b/..", "/a/"},
                                                                 {"/a/b/../", "/a/"},
                                                                 {"/a/./b", "/a/b"},
                                                                 {"/a/b/c/./../../g", "/a/g"},
                                                                 {"/mid/content=5/../6", "/mid/6"},
                                                                 {"/a/b//..", "/a/"},
                                                                 {"//", "/"},
                                                                 {"/a//", "/a/"},
                                                                 {"/a///b", "/a/b"}};
  for (const auto& [target, expected] : cases) EXPECT_EQ(counted(target), expected) << target;
}

TEST(Path, DotSegmentsMayEndAtTheQuery) {
  EXPECT_EQ(canonical("/a/..?x"), (Result{"/?x", "/", ""}));
  EXPECT_EQ(canonical("/a/.?"), (Result{"/a/?", "/a/", ""}));
  EXPECT_EQ(canonical("/..?x"), refused);
}

TEST(Path, ParamsAreForwardedButNotCounted) {
  const Result cases[] = {{"/a;x=1", "/a", ""},        {"/a;x/b;y/c", "/a/b/c", ""},
                          {"/a;x;y", "/a", ""},        {"/a;x/?;q", "/a/", ""},
                          {"/;jsessionid=1", "/", ""}, {"/a/;x", "/a/", ""}};
  for (const Result& expected : cases) EXPECT_EQ(canonical(expected.forward), expected);
  EXPECT_EQ(canonical("/a;x/../b"), (Result{"/b", "/b", ""}));
  EXPECT_EQ(canonical("//a;%7e/./b;%3b?;"), (Result{"/a;~/b;%3B?;", "/a/b", ""}));
}

TEST(Path, ASegmentThatIsDotsOrNothingOnceItsParamsAreCutIsRefused) {
  for (const std::string_view target :
       {"/..;/a", "/.;x/a", "/a/..;x/b", "/%2e%2e;x/", "/a/%2e;", "/a/..;", "/a/.;x=1?y", "/;x/a",
        "/a/;x/b", "/a/;x/..", "/;/", "//;x//a"}) {
    EXPECT_EQ(canonical(target), refused) << target;
  }
}

TEST(Path, TheQueryIsForwardedAsSent) {
  for (const std::string_view query :
       {"?", "??", "?x", "?a=/../b//c", "?%2f%5c%00%61", "?\\..\\", "?;x"}) {
    const std::string suffix(query);
    EXPECT_EQ(canonical("/a" + suffix), (Result{"/a" + suffix, "/a", ""}));
    EXPECT_EQ(canonical("/./%61;x" + suffix), (Result{"/a;x" + suffix, "/a", ""}));
    EXPECT_EQ(canonical("http://h" + suffix), (Result{"/" + suffix, "/", "h"}));
  }
}

TEST(Path, EscapedSlashesMayBeKeptAndNeverSeparateSegments) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"/a%2fb", "/a%2Fb"},       {"/a%5cb", "/a%5Cb"},       {"/a\\b", "/a\\b"},
      {"/a/..%2fa", "/a/..%2Fa"}, {"/a\\..\\a", "/a\\..\\a"}, {"/x/a%2f..%2fb/../c", "/x/c"},
      {"/a%2F%2Fb", "/a%2F%2Fb"}};
  for (const auto& [target, expected] : cases) {
    EXPECT_EQ(canonical(target, EscapedSlashes::keep).counted, expected) << target;
    EXPECT_EQ(canonical(target, EscapedSlashes::keep).forward, expected) << target;
  }
}

TEST(Path, AnAbsoluteTargetGivesItsAuthority) {
  EXPECT_EQ(canonical("http://h/a?x"), (Result{"/a?x", "/a", "h"}));
  EXPECT_EQ(canonical("hTTp://H.example:80/%61"), (Result{"/a", "/a", "H.example:80"}));
  EXPECT_EQ(canonical("https://[2001:db8::1]:8443"), (Result{"/", "/", "[2001:db8::1]:8443"}));
  EXPECT_EQ(canonical("http://h//b/../a"), (Result{"/a", "/a", "h"}));
  for (const std::string_view target :
       {"http://", "http:///a", "http://?x", "http://u@h/a", "http://u:p@h/a", "http://h#x",
        "http://h\\a", "http://h%41/a", "http://h:/a", "ftp://h/a", "http:/h/a", "http:h/a",
        "httpx://h/a", "h:443", "http://h/../a"}) {
    EXPECT_EQ(canonical(target), refused) << target;
  }
}

TEST(Path, AnAuthorityIsAHostAndPerhapsAPort) {
  for (const std::string_view good : {"h", "a-b.c_d", "h:0", "h:65535", "1.2.3.4:80", "[::1]",
                                      "[::ffff:1.2.3.4]:443", "example.com."}) {
    EXPECT_TRUE(valid_authority(good)) << good;
  }
  for (const std::string_view bad :
       {"",       ":",         ":80",   "h:",  "h:65536", "h:-1", "h:1x", "h:000080",
        "u@h",    "h h",       "h/a",   "h,i", "a:b:1",   "[]",   "[::1", "::1",
        "[::1]x", "[1.2.3.4]", "[x]:1", "]",   "[::1]80", "h%41", "h~",   "[fe80::1%25eth0]",
        "\x80",   "h\t"}) {
    EXPECT_FALSE(valid_authority(bad)) << bad;
  }
}

TEST(Path, AHostIsTheSameWithAPortOrAFinalDot) {
  for (const std::string_view authority :
       {"h.example", "h.example:80", "h.example.", "h.example.:80"}) {
    EXPECT_EQ(host_of(authority), "h.example") << authority;
  }
  EXPECT_EQ(host_of("[::1]:80"), "[::1]");
  EXPECT_EQ(host_of("[::1]"), "[::1]");
  EXPECT_EQ(host_of("[::1"), "[::1");
  EXPECT_EQ(host_of(""), "");
  EXPECT_EQ(host_of("."), ".");
}

TEST(Path, AnAsteriskIsForOptionsOnly) {
  const Result asterisk{"*", "*", ""};
  EXPECT_EQ(canonical("*", EscapedSlashes::reject, "OPTIONS"), asterisk);
  EXPECT_EQ(canonical("http://h", EscapedSlashes::reject, "OPTIONS"), (Result{"*", "*", "h"}));
  EXPECT_EQ(canonical("http://h/", EscapedSlashes::reject, "OPTIONS"), (Result{"/", "/", "h"}));
  EXPECT_EQ(canonical("http://h?", EscapedSlashes::reject, "OPTIONS"), (Result{"/?", "/", "h"}));
  for (const std::string_view method : {"GET", "options", "OPTIONSX", ""}) {
    EXPECT_EQ(canonical("*", EscapedSlashes::reject, method), refused) << method;
  }
  EXPECT_EQ(canonical("**", EscapedSlashes::reject, "OPTIONS"), refused);
}

TEST(Path, ATargetBeginsWithASlash) {
  for (const std::string_view target : {"", "a", "?x", ";x", "%2fa", "./a", " /a", "\\a"}) {
    EXPECT_EQ(canonical(target), refused) << target;
  }
}

TEST(Path, ACanonicalTargetIsNotCopied) {
  for (const std::string_view target :
       {"/", "/a", "/a/b/", "/a%20b/%C0?x=%61/../y", "/.a/..b/...", "/svc.Name/Method", "/a?"}) {
    std::string scratch = "untouched";
    const auto result = canonical_target("GET", target, EscapedSlashes::reject, scratch);
    EXPECT_EQ(std::get<Target>(result).forward.data(), target.data()) << target;
    EXPECT_EQ(std::get<Target>(result).counted.data(), target.data()) << target;
    EXPECT_EQ(scratch, "untouched");
  }
}

TEST(Path, AScratchStringMayBeUsedAgain) {
  std::string scratch;
  for (const std::string_view target : {"/a//long/path;x/to/begin;y/with", "//b;x", "//c"}) {
    const auto result = canonical_target("GET", target, EscapedSlashes::reject, scratch);
    EXPECT_EQ(std::get<Target>(result).counted, canonical(target).counted);
    EXPECT_EQ(std::get<Target>(result).forward, canonical(target).forward);
  }
}

TEST(PathPattern, MatchesSegmentBySegment) {
  struct Case {
    std::string_view pattern;
    std::vector<std::string_view> matches, others;
  };
  const Case cases[] = {
      {"/a", {"/a"}, {"/a/", "/A", "/ab", "/", "*", ""}},
      {"/", {"/"}, {"/a", "*"}},
      {"/a/*", {"/a/b", "/a/*"}, {"/a", "/a/", "/a/b/", "/a/b/c", "/b/a"}},
      {"/*/b", {"/a/b"}, {"/b", "/a/c", "/a/b/"}},
      {"/*", {"/a"}, {"/", "/a/"}},
      {"/a/*/", {"/a/b/"}, {"/a/b", "/a//"}},
      {"/a/**", {"/a", "/a/", "/a/b", "/a/b/c/"}, {"/", "/ab", "/A/b", "*"}},
      {"/a/*/**", {"/a/b", "/a/b/", "/a/b/c"}, {"/a", "/a/"}},
      {"/**", {"/", "/a", "/a/b/"}, {"*", ""}},
      {"//b/../%61/./%2a", {"/a/%2A"}, {"/a/*", "/a/b"}},
  };
  for (const auto& [pattern, matches, others] : cases) {
    for (const auto path : matches)
      EXPECT_TRUE(PathPattern(pattern).matches(path)) << pattern << path;
    for (const auto path : others)
      EXPECT_FALSE(PathPattern(pattern).matches(path)) << pattern << path;
  }
}

TEST(PathPattern, WhatCouldNeverMatchIsAnError) {
  for (const std::string_view pattern :
       {"", "a", "*", "**", "/a?x", "/a;x", "/a*", "/*.js", "/***", "/a/**/b", "/**/", "/a#",
        "/../a", "/a%0", "/a b", "/a%00"}) {
    EXPECT_THROW(PathPattern{pattern}, std::invalid_argument) << pattern;
    EXPECT_NE(check_pattern(pattern), "") << pattern;
  }
  EXPECT_EQ(check_pattern("/a/*/**"), "");
  EXPECT_EQ(check_pattern("/a%2Fb"), "");  // for escaped_slashes: keep
}

}  // namespace
}  // namespace weir
