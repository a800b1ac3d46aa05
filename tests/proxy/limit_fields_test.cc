#include "proxy/limit_fields.h"

#include <gtest/gtest.h>

#include "proxy/headers.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string fields(LimitHeaders style, const Limit& limit, const Standing& standing,
                   milliseconds waited = milliseconds{0}) {
  std::string out;
  append_limit_fields(out, style, {"reports", limit, standing, waited});
  return out;
}

const Limit per_minute;  // the default: 100

Limit in_flight(int units) {
  Limit limit;
  limit.units = units;
  limit.mode = Mode::in_flight;
  return limit;
}

TEST(LimitFields, TellThePolicyWhatIsLeftAndWhenThereIsMore) {
  EXPECT_EQ(fields(LimitHeaders::ietf, per_minute, {58, seconds{12}}),
            "RateLimit-Policy: \"reports\";q=100;w=60\r\nRateLimit: \"reports\";r=58;t=12\r\n");
}

TEST(LimitFields, TellHowLongARequestWaitedIfItDid) {
  EXPECT_EQ(fields(LimitHeaders::ietf, per_minute, {0, seconds{60}}, milliseconds{30'000}),
            "RateLimit-Policy: \"reports\";q=100;w=60\r\nRateLimit: \"reports\";r=0;t=60\r\n"
            "Weir-Waited-Ms: 30000\r\n");
}

TEST(LimitFields, OfInFlightKnowNoTime) {
  EXPECT_EQ(fields(LimitHeaders::ietf, in_flight(5), {2, std::nullopt}),
            "RateLimit-Policy: \"reports\";q=5;qu=\"concurrent-requests\"\r\n"
            "RateLimit: \"reports\";r=2\r\n");
}

TEST(LimitFields, AreTheOldOnesOrNoneIfAskedFor) {
  EXPECT_EQ(fields(LimitHeaders::legacy, per_minute, {58, seconds{12}}, milliseconds{3}),
            "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 58\r\nX-RateLimit-Reset: 12\r\n"
            "Weir-Waited-Ms: 3\r\n");
  EXPECT_EQ(fields(LimitHeaders::off, per_minute, {58, seconds{12}}, milliseconds{3}), "");
}

TEST(LimitFields, StandInForTheUpstreamsOwn) {
  http::Head head;
  http::HeadReader reader(http::HeadReader::Kind::response, {});
  reader.read(
      "HTTP/1.1 200 OK\r\nratelimit: 1\r\nRateLimit-Policy: 2\r\nX-RateLimit-Limit: 3\r\n"
      "X-RateLimit-Remaining: 4\r\nX-RateLimit-Reset: 5\r\nWeir-Waited-Ms: 6\r\n\r\n",
      head);
  const auto written = [&](const LimitFields& ours) {
    std::string out;
    append_switch_head(out, head, "x", ours);
    return out.substr(out.find("\r\n") + 2, out.find("Connection") - out.find("\r\n") - 2);
  };
  EXPECT_EQ(written({LimitHeaders::ietf, "A: b\r\n"}),
            "X-RateLimit-Limit: 3\r\nX-RateLimit-Remaining: 4\r\nX-RateLimit-Reset: 5\r\nA: b\r\n");
  EXPECT_EQ(written({LimitHeaders::legacy, "A: b\r\n"}),
            "ratelimit: 1\r\nRateLimit-Policy: 2\r\nA: b\r\n");
  EXPECT_EQ(written({}),
            "ratelimit: 1\r\nRateLimit-Policy: 2\r\nX-RateLimit-Limit: 3\r\n"
            "X-RateLimit-Remaining: 4\r\nX-RateLimit-Reset: 5\r\nWeir-Waited-Ms: 6\r\n");
}

TEST(Shares, AddUpToTheLimitTheFirstOnesGettingTheRest) {
  EXPECT_EQ(share_of(100, 3, 0), 34);
  EXPECT_EQ(share_of(100, 3, 1), 33);
  EXPECT_EQ(share_of(100, 3, 2), 33);
  EXPECT_EQ(share_of(100, 1, 0), 100);
  EXPECT_EQ(share_of(2, 3, 2), 0);
}

}  // namespace
}  // namespace weir
