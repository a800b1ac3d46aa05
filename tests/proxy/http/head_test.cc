// The reader of message heads: what it takes, what it refuses, and that it does not matter how the
// bytes arrive. What a whole request must look like is told through sockets in strictness_test.

#include "proxy/http/head.h"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using Kind = HeadReader::Kind;
using State = HeadReader::State;

constexpr Limits kLimits{
    .header_bytes = 1024, .header_fields = 4, .target_bytes = 100, .connections = 1};

State read(Kind kind, std::string_view bytes) {
  HeadReader reader(kind, kLimits);
  Head head;
  return reader.read(bytes, head).state;
}

State request(std::string_view bytes) { return read(Kind::request, bytes); }

TEST(RequestHead, IsTakenApart) {
  HeadReader reader(Kind::request, kLimits);
  Head head;
  const std::string bytes =
      "POST /a?b HTTP/1.1\r\nHost: h\r\nX-Thing:  some \t value\t \r\n\r\nrest";
  const auto result = reader.read(bytes, head);
  ASSERT_EQ(result.state, State::done);
  EXPECT_EQ(bytes.substr(result.consumed), "rest");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/a?b");
  EXPECT_EQ(head.minor_version, 1);
  ASSERT_EQ(head.fields.size(), 2u);
  EXPECT_EQ(head.fields[0].known, Known::host);
  EXPECT_EQ(head.fields[1].name, "X-Thing");
  EXPECT_EQ(head.fields[1].value, "some \t value");
}

TEST(RequestHead, IsTheSameByteByByte) {
  const std::string bytes = "GET / HTTP/1.0\r\nA: b\r\nHost: h\r\n\r\n";
  HeadReader reader(Kind::request, kLimits);
  Head head;
  for (std::size_t n = 1; n < bytes.size(); ++n) {
    ASSERT_EQ(reader.read(std::string_view{bytes}.substr(0, n), head).state, State::more) << n;
  }
  ASSERT_EQ(reader.read(bytes, head).state, State::done);
  EXPECT_EQ(head.minor_version, 0);
  EXPECT_EQ(head.fields.size(), 2u);
  // The next message begins afresh.
  ASSERT_EQ(reader.read("GET /2 HTTP/1.1\r\n\r\n", head).state, State::done);
  EXPECT_EQ(head.target, "/2");
  EXPECT_TRUE(head.fields.empty());
}

TEST(RequestHead, OneEmptyLineBeforeItIsForgiven) {
  HeadReader reader(Kind::request, kLimits);
  Head head;
  EXPECT_EQ(reader.read("\r\nGET / HTTP/1.1\r\n\r\n", head).state, State::done);
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(request("\r\n\r\nGET / HTTP/1.1\r\n\r\n"), State::malformed);
}

TEST(RequestHead, SaysWhatItsConnectionFieldsList) {
  HeadReader reader(Kind::request, kLimits);
  Head head;
  ASSERT_EQ(reader
                .read("GET / HTTP/1.1\r\nConnection: Upgrade, ,X-One\r\nA: b\r\n"
                      "connection: x-two ,KEEP-ALIVE\r\n\r\n",
                      head)
                .state,
            State::done);
  EXPECT_TRUE(head.connection.upgrade);
  EXPECT_TRUE(head.connection.keep_alive);
  EXPECT_FALSE(head.connection.close);
  EXPECT_EQ(head.connection.fields, (std::vector<std::string_view>{"X-One", "x-two"}));
  ASSERT_EQ(reader.read("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", head).state, State::done);
  EXPECT_TRUE(head.connection.close);
  EXPECT_FALSE(head.connection.upgrade);
  EXPECT_TRUE(head.connection.fields.empty());
}

TEST(RequestHead, MoreConnectionOptionsThanAnybodyNeedsAreMalformed) {
  const auto listing = [](const std::string& element, int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i > 0 ? "," : "") + element;
    return "GET / HTTP/1.1\r\nConnection: " + list + "\r\n\r\n";
  };
  EXPECT_EQ(request(listing("x", 32)), State::done);
  EXPECT_EQ(request(listing("x", 33)), State::malformed);
  EXPECT_EQ(request(listing("", 32)), State::done);
  EXPECT_EQ(request(listing("", 33)), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nConnection: " + std::string(16, ',') +
                    "\r\nConnection: " + std::string(16, ',') + "\r\n\r\n"),
            State::malformed);
}

TEST(RequestHead, NothingButCrLfEndsALine) {
  EXPECT_EQ(request("GET / HTTP/1.1\nHost: h\r\n\r\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nHost: h\n\r\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nHost: h\r\n\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\rHost: h\r\n\r\n"), State::malformed);
}

TEST(RequestHead, FieldsAreOneLineWithANameRightBeforeTheColon) {
  EXPECT_EQ(request("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\n A: b\r\n\r\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nA : b\r\n\r\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nA\t: b\r\n\r\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\n: b\r\n\r\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nno colon\r\n\r\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nA(: b\r\n\r\n"), State::malformed);
}

TEST(RequestHead, ControlBytesAreRefused) {
  for (int c = 0; c < 0x20; ++c) {
    if (c == '\t' || c == '\r' || c == '\n') continue;
    const std::string byte(1, static_cast<char>(c));
    EXPECT_EQ(request("GET / HTTP/1.1\r\nA: x" + byte + "y\r\n\r\n"), State::malformed) << c;
  }
  EXPECT_EQ(request("GET / HTTP/1.1\r\nA: \x7f\r\n\r\n"), State::malformed);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nA: caf\xc3\xa9\r\n\r\n"), State::done);
}

// They are looked for eight at a time.
TEST(RequestHead, AByteIsJudgedTheSameWhereverItStands) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool plain = (byte >= 0x20 && byte != 0x7f) || byte == '\t';
    for (std::size_t before = 0; before < 20; ++before) {
      const std::string value =
          std::string(before, 'v') + static_cast<char>(byte) + std::string(20 - before, 'v');
      const std::string text = "GET / HTTP/1.1\r\nHost: h\r\nField: " + value + "\r\n\r\n";
      HeadReader reader(HeadReader::Kind::request, Limits{});
      Head head;
      const auto result = reader.read(text, head);
      EXPECT_EQ(result.state == HeadReader::State::done, plain) << byte << " at " << before;
    }
  }
}

TEST(RequestHead, OnlyHttp10And11AreSpoken) {
  for (const char* version :
       {"HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/11", "http/1.1", "ICE/1.1", ""}) {
    EXPECT_EQ(request("GET / " + std::string{version} + "\r\n\r\n"), State::malformed) << version;
  }
  EXPECT_EQ(request("OPTIONS / RTSP/1.1\r\n\r\n"), State::malformed);
}

TEST(RequestHead, TooMuchIsToldApartByWhatIsTooMuch) {
  const std::string fields(900, 'f');
  EXPECT_EQ(request("GET /" + std::string(99, 'a') + " HTTP/1.1\r\n\r\n"), State::done);
  EXPECT_EQ(request("GET /" + std::string(100, 'a') + " HTTP/1.1\r\n\r\n"), State::target_too_long);
  EXPECT_EQ(request("GET /" + std::string(500, 'a')), State::target_too_long);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nA: " + fields + "\r\nB: " + fields + "\r\n\r\n"),
            State::too_large);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nA: " + std::string(2000, 'x')), State::too_large);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nA:1\r\nB:2\r\nC:3\r\nD:4\r\n\r\n"), State::done);
  EXPECT_EQ(request("GET / HTTP/1.1\r\nA:1\r\nB:2\r\nC:3\r\nD:4\r\nE:5\r\n\r\n"), State::too_large);
}

TEST(RequestHead, OnlyALargeOneIsReleased) {
  HeadReader reader(Kind::request, Limits{});
  Head head;
  const std::string start = "GET /a HTTP/1.1\r\nHost: h\r\n";
  ASSERT_EQ(reader.read(start + "\r\n", head).state, State::done);
  head.release_large();
  EXPECT_EQ(head.target, "/a");
  ASSERT_EQ(reader.read(start + "X: " + std::string(8'000, 'x') + "\r\n\r\n", head).state,
            State::done);
  head.release_large();
  EXPECT_TRUE(head.target.empty()) << "nor is anything left that points into it";
  EXPECT_EQ(head.fields.capacity(), 0u);
}

TEST(ResponseHead, IsTakenApart) {
  HeadReader reader(Kind::response, kLimits);
  Head head;
  ASSERT_EQ(reader.read("HTTP/1.1 404 Not Here\r\nContent-Length: 0\r\n\r\n", head).state,
            State::done);
  EXPECT_EQ(head.status, 404);
  EXPECT_EQ(head.reason, "Not Here");
  EXPECT_EQ(head.fields[0].known, Known::content_length);
}

TEST(ResponseHead, GarbageIsRefused) {
  EXPECT_EQ(read(Kind::response, "HELLO\r\n\r\n"), State::malformed);
  EXPECT_EQ(read(Kind::response, "HTTP/1.1 20 OK\r\n\r\n"), State::malformed);
  EXPECT_EQ(read(Kind::response, "HTTP/1.1 999 No\r\n\r\n"), State::malformed);
  EXPECT_EQ(read(Kind::response, "HTTP/1.1 200 OK\nA: b\n\n"), State::malformed);
}

TEST(KnownFields, AreFoundInAnyLetterCase) {
  EXPECT_EQ(known_field("TRANSFER-encoding"), Known::transfer_encoding);
  EXPECT_EQ(known_field("te"), Known::te);
  EXPECT_EQ(known_field("Proxy-Authorization"), Known::proxy_authorization);
  EXPECT_EQ(known_field("X-Forwarded-Fox"), Known::other);
  EXPECT_EQ(known_field(""), Known::other);
  EXPECT_EQ(known_field(std::string(300, 'x')), Known::other);
}

}  // namespace
}  // namespace weir::http
