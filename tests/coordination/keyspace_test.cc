#include "coordination/keyspace.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

const Window kWindow{*parse_utc("2026-11-18T05:04:00Z"), 60s};

std::string key_of(const Keyspace& keys, std::string_view resource, Mode mode) {
  const std::string claims = keys.claims_of("default", resource, mode, kWindow);
  return keys.claim(claims, mode, *parse_utc("2026-11-18T05:04:06Z"), 17);
}

TEST(Keyspace, WritesKeysAsTheContractHasThem) {
  const Keyspace keys("/weir/v1", "r1");
  EXPECT_EQ(key_of(keys, "/foo", Mode::started),
            "/weir/v1/claims/default:/foo@2026-11-18T05:04:00Z/r1-17");
  EXPECT_EQ(key_of(keys, "/foo", Mode::until_done),
            "/weir/v1/claims/default:/foo@2026-11-18T05:04:00Z/r1-17");
  EXPECT_EQ(key_of(keys, "/foo", Mode::sliding),
            "/weir/v1/claims/default:/foo@sliding/2026-11-18T05:04:06Z/r1-17");
  EXPECT_EQ(key_of(keys, "/foo", Mode::in_flight), "/weir/v1/claims/default:/foo@in_flight/r1-17");
}

TEST(Keyspace, NoResourcesKeysLieAmongAnothers) {
  const Keyspace keys("/weir/v1", "r1");
  const std::vector<std::string> names{"/foo",
                                       "/foobar",
                                       "/foo/bar",
                                       "/foo@bar",
                                       "/foo@",
                                       "/fo",
                                       "/foo@2026-11-18T05:04:00Z/r1-1",
                                       "/foo%40",
                                       "*",
                                       "%",
                                       ""};
  for (const std::string& one : names) {
    const KeyRange range = keys_under(keys.claims_of("default", one, Mode::started, kWindow));
    for (const std::string& other : names) {
      const std::string key = key_of(keys, other, Mode::started);
      EXPECT_EQ(key >= range.key && key < range.end, one == other) << one << " and " << other;
    }
  }
}

TEST(Keyspace, AnyBytesSurviveTheRoundTrip) {
  std::string odd;
  for (int byte = 0; byte < 256; ++byte) odd.push_back(static_cast<char>(byte));
  const Keyspace keys("/weir/v1", "host/name-with-7@%");
  for (const Mode mode : {Mode::started, Mode::sliding, Mode::in_flight, Mode::until_done}) {
    const auto parsed = keys.parse_claim(key_of(keys, odd, mode));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->rule, "default");
    EXPECT_EQ(parsed->resource, odd);
    EXPECT_EQ(parsed->replica, "host/name-with-7@%");
    EXPECT_EQ(parsed->seq, 17u);
    EXPECT_EQ(Keyspace::owner_of(key_of(keys, odd, mode)), keys.owner());
  }
}

TEST(Keyspace, WhatIsNoClaimIsNotTakenForOne) {
  const Keyspace keys("/weir/v1", "r1");
  for (const char* key :
       {"/weir/v1/claims/", "/weir/v1/replicas/r1", "/weir/v1/claims/default:/foo",
        "/weir/v1/claims/default:/foo@w", "/weir/v1/claims/default:/foo@w/r1",
        "/weir/v1/claims/default:/foo@w/r1-x", "/weir/v1/claims/:@/-",
        "/weir/v1/claims/default:/f%4@w/r1-1", "/weir/v1/claims/d@w:/foo/r1-1"}) {
    EXPECT_FALSE(keys.parse_claim(key)) << key;
  }
}

TEST(ClaimValue, IsReadAsItWasWritten) {
  const std::string value = claim_value(47, *parse_utc("2026-11-18T05:04:07Z") + 123ms);
  EXPECT_EQ(value, "{\"units\":47,\"at\":\"2026-11-18T05:04:07.123Z\"}");
  EXPECT_EQ(claimed_units(value), 47);
}

TEST(ClaimValue, MayBeWrittenByHand) {
  EXPECT_EQ(claimed_units("{\"units\":5}"), 5);
  EXPECT_EQ(claimed_units("{ \"at\": \"now\", \"units\": 6 }"), 6);
}

TEST(ClaimValue, WhatCannotBeReadCountsAsOneUnit) {
  for (const char* value :
       {"", "{}", "[]", "7", "{\"units\":\"5\"}", "{\"units\":-3}", "{\"units\":0}",
        "{\"units\":1e30}", "{\"units\":1.5}", "{\"units\":"}) {
    EXPECT_EQ(claimed_units(value), 1) << value;
  }
}

}  // namespace
}  // namespace weir
