#include "proxy/attempt/pushback.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir {
namespace {

using namespace std::chrono_literals;
using Kind = Pushback::Kind;

// Sun, 06 Nov 1994 08:49:37 GMT
constexpr WallTime kNow{std::chrono::seconds{784111777}};

Pushback of(std::vector<http::Field> fields, int status = 503) {
  return read_pushback(status, fields, kNow);
}
Pushback grpc(std::string_view value) { return of({{"grpc-retry-pushback-ms", value}}); }
Pushback retry_after(std::string_view value) { return of({{"Retry-After", value}}); }

TEST(Pushback, IsExactlyTheMillisecondsThatTheServerSays) {
  EXPECT_EQ(grpc("123").kind, Kind::delay);
  EXPECT_EQ(grpc("123").delay, 123ms);
  EXPECT_EQ(grpc("0").delay, 0ms);
  EXPECT_EQ(grpc("2147483647").delay, 2147483647ms);
}

TEST(Pushback, WhatIsNegativeOrNoNumberForbidsARetry) {  // G-9
  for (auto value : {"-1", "xxx", "", "2147483648", "+5", "007", "-0", "1.5", " 1", "5 "}) {
    EXPECT_EQ(grpc(value).kind, Kind::stop) << value;
  }
}

TEST(Pushback, TwoValuesForbidARetry) {  // G-9
  EXPECT_EQ(of({{"grpc-retry-pushback-ms", "100"}, {"Grpc-Retry-Pushback-Ms", "10"}}).kind,
            Kind::stop);
}

TEST(Pushback, RetryAfterCountsOn429And503) {
  EXPECT_EQ(retry_after("7").delay, 7s);
  EXPECT_EQ(of({{"retry-after", "7"}}, 429).delay, 7s);
  EXPECT_EQ(of({{"retry-after", "7"}}, 502).kind, Kind::none);
  EXPECT_EQ(of({{"retry-after", "7"}}, 200).kind, Kind::none);
}

TEST(Pushback, RetryAfterMayBeADate) {
  EXPECT_EQ(retry_after("Sun, 06 Nov 1994 08:49:40 GMT").delay, 3s);
  EXPECT_EQ(retry_after("Sunday, 06-Nov-94 08:49:40 GMT").delay, 3s);
  EXPECT_EQ(retry_after("Sun Nov  6 08:49:40 1994").delay, 3s);
  EXPECT_EQ(retry_after("Sun, 06 Nov 1994 08:49:30 GMT").kind, Kind::delay);
  EXPECT_EQ(retry_after("Sun, 06 Nov 1994 08:49:30 GMT").delay, 0s) << "it has passed";
}

TEST(Pushback, AnUnreadableRetryAfterIsIgnored) {
  for (auto value : {"-1", "soon", "", "1.5", "Sun, 06 Nov 1994"}) {
    EXPECT_EQ(retry_after(value).kind, Kind::none) << value;
  }
  EXPECT_EQ(of({{"Retry-After", "1"}, {"Retry-After", "2"}}).kind, Kind::none);
  EXPECT_EQ(retry_after("99999999999999999999").kind, Kind::delay);
}

TEST(Pushback, OfBothThatOfGrpcWins) {
  EXPECT_EQ(of({{"Retry-After", "7"}, {"grpc-retry-pushback-ms", "5"}}).delay, 5ms);
  EXPECT_EQ(of({{"Retry-After", "7"}, {"grpc-retry-pushback-ms", "no"}}).kind, Kind::stop);
}

TEST(Pushback, WithoutEitherThereIsNone) { EXPECT_EQ(of({{"Date", "7"}}).kind, Kind::none); }

}  // namespace
}  // namespace weir
