#include "proxy/forwarded.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {
namespace {

Address address(std::string_view text) { return Address::parse(text).value(); }

TrustedProxies trusting(std::vector<std::string> cidrs) { return TrustedProxies(cidrs); }

// The client of a request from `peer` with these X-Forwarded-For fields.
std::string client(const TrustedProxies& trusted, std::string_view peer,
                   const std::vector<std::string_view>& lists) {
  std::vector<http::Field> fields{{"Host", "10.9.9.9"}};
  for (const auto list : lists) fields.push_back({"X-Forwarded-For", list});
  fields.push_back({"X-Forwarded-Fo", "10.9.9.8"});
  return trusted.client_address(address(peer), fields).text();
}

TEST(Address, IsWrittenInOneWay) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"1.2.3.4", "1.2.3.4"},
      {"::ffff:1.2.3.4", "1.2.3.4"},
      {"::FFFF:102:304", "1.2.3.4"},
      {"2001:DB8:0:0::1", "2001:db8::1"},
      {"::", "::"},
      {"::1", "::1"},
      {"255.255.255.255", "255.255.255.255"}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(address(text).text(), expected) << text;
}

TEST(Address, IPv4AndTheIPv6ItMapsToAreEqual) {
  EXPECT_EQ(address("1.2.3.4"), address("::ffff:1.2.3.4"));
  EXPECT_EQ(address("1.2.3.4"), Address(Address::V4{1, 2, 3, 4}));
  EXPECT_TRUE(address("::ffff:1.2.3.4").is_v4());
  EXPECT_FALSE(address("::1.2.3.4").is_v4());
  EXPECT_NE(address("1.2.3.4"), address("::1.2.3.4"));
}

TEST(Address, AnythingElseIsNone) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {""sv, "1.2.3"sv, "1.2.3.256"sv, "1.2.3.4 "sv, "01.2.3.4x"sv, "[::1]"sv, "::1%eth0"sv,
        ":::"sv, "g::"sv, "1.2.3.4\0"sv, "1.2.3.4\0.evil"sv, "unknown"sv, "0x7f.1"sv,
        "1111:2222:3333:4444:5555:6666:255.255.255.2555555"sv}) {
    EXPECT_FALSE(Address::parse(text)) << text;
  }
}

TEST(Address, APrefixKeepsTheFirstBits) {
  EXPECT_EQ(address("2001:db8:1:2:3:4:5:6").prefix(64), address("2001:db8:1:2::"));
  EXPECT_EQ(address("2001:db8:ffff::").prefix(33), address("2001:db8:8000::"));
  EXPECT_EQ(address("ffff::1").prefix(128), address("ffff::1"));
  EXPECT_EQ(address("ffff::1").prefix(0), address("::"));
}

TEST(TrustedProxies, HoldTheirRangesAndNothingElse) {
  struct Case {
    std::string cidr;
    std::vector<std::string_view> inside, outside;
  };
  const Case cases[] = {
      {"10.0.0.0/8",
       {"10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3"},
       {"11.0.0.0", "9.255.255.255", "::10.0.0.1"}},
      {"10.1.2.3/8", {"10.9.9.9"}, {"11.1.2.3"}},
      {"192.0.2.7", {"192.0.2.7"}, {"192.0.2.6", "192.0.2.8"}},
      {"192.0.2.128/25", {"192.0.2.128", "192.0.2.255"}, {"192.0.2.127"}},
      {"0.0.0.0/0", {"1.2.3.4", "255.0.0.1"}, {"::1", "2001:db8::1"}},
      {"::/0", {"::1", "2001:db8::1"}, {"1.2.3.4"}},
      {"2001:db8::/32", {"2001:db8::", "2001:db8:ffff::1"}, {"2001:db9::", "32.1.13.184"}},
      {"2001:db8::1", {"2001:db8::1"}, {"2001:db8::2"}},
      {"::ffff:10.0.0.0/104", {"10.1.1.1"}, {"11.1.1.1"}},
  };
  for (const auto& [cidr, inside, outside] : cases) {
    const auto trusted = trusting({"203.0.113.1", cidr});
    for (const auto text : inside)
      EXPECT_TRUE(trusted.contains(address(text))) << cidr << " " << text;
    for (const auto text : outside)
      EXPECT_FALSE(trusted.contains(address(text))) << cidr << " " << text;
  }
}

TEST(TrustedProxies, AreGivenAsAddressesAndCidrs) {
  for (const std::string text :
       {"", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8 ", "10.0.0/8",
        "::/129", "::/x", "host", "10.0.0.0/8/8", "/8"}) {
    EXPECT_FALSE(Cidr::parse(text)) << text;
    EXPECT_THROW(trusting({"10.0.0.1", text}), std::invalid_argument) << text;
  }
}

TEST(ClientAddress, IsThePeerUnlessThePeerIsTrusted) {
  EXPECT_EQ(client({}, "192.0.2.1", {"1.1.1.1"}), "192.0.2.1");
  EXPECT_EQ(client(trusting({"10.0.0.0/8"}), "192.0.2.1", {"1.1.1.1"}), "192.0.2.1");
  EXPECT_EQ(client(trusting({"10.0.0.0/8"}), "10.0.0.1", {"1.1.1.1"}), "1.1.1.1");
  EXPECT_EQ(client(trusting({"10.0.0.0/8"}), "::ffff:10.0.0.1", {"::ffff:1.1.1.1"}), "1.1.1.1");
  EXPECT_EQ(client(trusting({"10.0.0.0/8"}), "10.0.0.1", {}), "10.0.0.1");
}

TEST(ClientAddress, IsTheFirstFromTheRightThatIsNotTrusted) {
  const auto trusted = trusting({"10.0.0.0/8", "2001:db8::/32"});
  const auto from = [&](const std::vector<std::string_view>& lists) {
    return client(trusted, "10.0.0.1", lists);
  };
  EXPECT_EQ(from({"6.6.6.6, 1.1.1.1"}), "1.1.1.1");
  EXPECT_EQ(from({"6.6.6.6, 1.1.1.1, 10.0.0.2"}), "1.1.1.1");
  EXPECT_EQ(from({"6.6.6.6,1.1.1.1 ,\t2001:db8::7,10.0.0.2"}), "1.1.1.1");
  EXPECT_EQ(from({"6.6.6.6", "1.1.1.1", "10.0.0.2"}), "1.1.1.1");
  EXPECT_EQ(from({"6.6.6.6, 1.1.1.1", "10.0.0.3, 10.0.0.2"}), "1.1.1.1");
  EXPECT_EQ(from({"10.0.0.9, 10.0.0.3", "10.0.0.2"}), "10.0.0.9");  // all trusted: the leftmost
}

TEST(ClientAddress, MayComeWithAPort) {
  const auto trusted = trusting({"10.0.0.1"});
  EXPECT_EQ(client(trusted, "10.0.0.1", {"1.1.1.1:5555"}), "1.1.1.1");
  EXPECT_EQ(client(trusted, "10.0.0.1", {"[2001:db8::1]:5555"}), "2001:db8::1");
  EXPECT_EQ(client(trusted, "10.0.0.1", {"[2001:db8::1]"}), "2001:db8::1");
}

TEST(ClientAddress, GarbageEndsTheWalkAtTheLastGoodOne) {
  const auto trusted = trusting({"10.0.0.0/8"});
  for (const std::string_view garbage : {"", " ", "unknown", "_hidden", "\"1.1.1.1\"",
                                         "1.1.1.1 2.2.2.2", "[::1", "[::1]x", "::1%eth0"}) {
    const std::string list = "6.6.6.6," + std::string(garbage);
    EXPECT_EQ(client(trusted, "10.0.0.1", {list}), "10.0.0.1") << list;
    EXPECT_EQ(client(trusted, "10.0.0.1", {list + ",10.0.0.2"}), "10.0.0.2") << list;
    EXPECT_EQ(client(trusted, "10.0.0.1", {"6.6.6.6", garbage}), "10.0.0.1") << garbage;
  }
}

TEST(ClientAddress, IsLookedForInSoManyEntriesOnly) {
  std::string list = "6.6.6.6";
  for (int i = 0; i < 31; ++i) list += ", 10.0.0.2";
  const auto trusted = trusting({"10.0.0.0/8"});
  EXPECT_EQ(client(trusted, "10.0.0.1", {list}), "6.6.6.6");
  EXPECT_EQ(client(trusted, "10.0.0.1", {list + ", 10.0.0.2"}), "10.0.0.2");
  EXPECT_EQ(client(trusted, "10.0.0.1", {list, "10.0.0.2"}), "10.0.0.2");
}

}  // namespace
}  // namespace weir
