// Where bodies end: strict on what the fields say, strict on chunks, and the same however the bytes
// are cut up.

#include "proxy/http/framing.h"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

constexpr Limits kLimits;

Framing request(const std::string& fields, int minor_version = 1) {
  HeadReader reader(HeadReader::Kind::request, kLimits);
  Head head;
  const std::string version = minor_version == 1 ? "1.1" : "1.0";
  // Some are refused by llhttp already; then there is no framing to ask for.
  if (reader.read("POST / HTTP/" + version + "\r\n" + fields + "\r\n", head).state !=
      HeadReader::State::done) {
    return {.fault = "refused by the reader"};
  }
  return request_framing(head);
}

Framing response(const std::string& status, const std::string& fields,
                 std::string_view method = "GET") {
  HeadReader reader(HeadReader::Kind::response, kLimits);
  Head head;
  if (reader.read("HTTP/1.1 " + status + " X\r\n" + fields + "\r\n", head).state !=
      HeadReader::State::done) {
    return {.fault = "refused by the reader"};
  }
  return response_framing(head, method);
}

TEST(RequestFraming, IsOneContentLengthOrExactlyChunkedOrNothing) {
  EXPECT_EQ(request("").kind, Framing::Kind::none);
  EXPECT_EQ(request("Content-Length: 0\r\n").kind, Framing::Kind::length);
  EXPECT_EQ(request("content-length: 9223372036854775807\r\n").length, 9223372036854775807u);
  EXPECT_EQ(request("Transfer-Encoding: chunked\r\n").kind, Framing::Kind::chunked);
  EXPECT_EQ(request("Transfer-Encoding: CHUNKED\r\n").kind, Framing::Kind::chunked);
}

TEST(RequestFraming, EverythingElseIsRefused) {
  for (const char* fields : {
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
           "Content-Length: 5\r\nContent-Length: 5\r\n",
           "Content-Length: 5\r\nContent-Length: 6\r\n",
           "Content-Length: 5, 5\r\n",
           "Content-Length: +5\r\n",
           "Content-Length: -5\r\n",
           "Content-Length: 5 5\r\n",
           "Content-Length: 0x5\r\n",
           "Content-Length: \r\n",
           "Content-Length: 9223372036854775808\r\n",
           "Content-Length: 99999999999999999999999\r\n",
           "Transfer-Encoding: xchunked\r\n",
           "Transfer-Encoding: identity\r\n",
           "Transfer-Encoding: gzip, chunked\r\n",
           "Transfer-Encoding: chunked, identity\r\n",
           "Transfer-Encoding: chunked, chunked\r\n",
           "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding:\r\n",
           "Transfer-Encoding: \"chunked\"\r\n",
       }) {
    EXPECT_NE(request(fields).fault, nullptr) << fields;
  }
  EXPECT_NE(request("Transfer-Encoding: chunked\r\n", 0).fault, nullptr) << "in HTTP/1.0";
}

TEST(ResponseFraming, FollowsStatusAndMethodBeforeFields) {
  EXPECT_EQ(response("200", "Content-Length: 7\r\n").length, 7u);
  EXPECT_EQ(response("200", "Content-Length: 7\r\n", "HEAD").kind, Framing::Kind::none);
  EXPECT_EQ(response("304", "Content-Length: 7\r\n").kind, Framing::Kind::none);
  EXPECT_EQ(response("204", "").kind, Framing::Kind::none);
  EXPECT_EQ(response("103", "").kind, Framing::Kind::none);
  EXPECT_EQ(response("200", "").kind, Framing::Kind::until_close);
  EXPECT_EQ(response("200", "Transfer-Encoding: chunked\r\n").kind, Framing::Kind::chunked);
}

TEST(ResponseFraming, IsAsStrictAsForRequests) {
  EXPECT_NE(response("200", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n").fault, nullptr);
  EXPECT_NE(response("200", "Content-Length: 5\r\nContent-Length: 5\r\n").fault, nullptr);
  EXPECT_NE(response("200", "Transfer-Encoding: gzip\r\n").fault, nullptr);
}

struct Decoded {
  std::string payload, rest;
  bool done, failed;
};

// Feeds the bytes `step` at a time.
Decoded decode(const std::string& wire, std::size_t step,
               Framing framing = {Framing::Kind::chunked}) {
  BodyDecoder decoder(framing);
  Decoded result{};
  std::string buffer;
  std::size_t at = 0;
  while (!decoder.done() && !decoder.failed() && (at < wire.size() || !buffer.empty())) {
    buffer += wire.substr(at, step);
    at += std::min(step, wire.size() - at);
    const auto piece = decoder.decode(buffer.data(), buffer.size());
    result.payload += piece.payload;
    buffer.erase(0, piece.wire);
    if (piece.wire == 0 && at >= wire.size()) break;
  }
  result.rest = buffer + wire.substr(at);
  result.done = decoder.done();
  result.failed = decoder.failed();
  return result;
}

TEST(ChunkedBody, IsTheSameHoweverItIsCut) {
  const std::string wire =
      "5;ext=\"1\"\r\nhello\r\n001\r\n,\r\nA\r\n the world\r\n0\r\nX: y\r\n\r\nGET /next";
  for (std::size_t step : {1u, 2u, 3u, 7u, 100u}) {
    const Decoded result = decode(wire, step);
    EXPECT_TRUE(result.done) << step;
    EXPECT_EQ(result.payload, "hello, the world") << step;
    EXPECT_EQ(result.rest, "GET /next") << step;
  }
}

TEST(ChunkedBody, ChunkLinesAreExact) {
  for (const std::string& wire : {
           std::string{"5\nhello\r\n0\r\n\r\n"},
           std::string{"0x5\r\nhello\r\n0\r\n\r\n"},
           std::string{"+5\r\nhello\r\n0\r\n\r\n"},
           std::string{"5_\r\nhello\r\n0\r\n\r\n"},
           std::string{" 5\r\nhello\r\n0\r\n\r\n"},
           std::string{"5 \r\nhello\r\n0\r\n\r\n"},
           std::string{"\r\nhello\r\n0\r\n\r\n"},
           std::string{";x\r\nhello\r\n0\r\n\r\n"},
           std::string{"5\r\nhello0\r\n\r\n"},
           std::string{"5\r\nhello\n0\r\n\r\n"},
           std::string{"5\r\nhello\r0\r\n\r\n"},
           std::string{"5;a\nb\r\nhello\r\n0\r\n\r\n"},
           std::string{"5;a\rb\r\nhello\r\n0\r\n\r\n"},
           std::string{"5;\0\r\nhello\r\n0\r\n\r\n", 17},
           std::string{"FFFFFFFFFFFFFFFF1\r\nhello\r\n0\r\n\r\n"},
           std::string{"8000000000000000\r\nhello\r\n0\r\n\r\n"},
           "5;" + std::string(65536, 'e') + "\r\nhello\r\n0\r\n\r\n",
           std::string(2000, '0') + "5\r\nhello\r\n0\r\n\r\n",
       }) {
    for (std::size_t step : {1u, 100u, 100000u}) {
      EXPECT_TRUE(decode(wire, step).failed) << wire.substr(0, 40) << " by " << step;
    }
  }
}

TEST(ChunkedBody, TrailersMustBeFieldsAndFew) {
  for (const std::string& trailers :
       {std::string{"no colon\r\n\r\n"}, std::string{"A : b\r\n\r\n"}, std::string{" A: b\r\n\r\n"},
        std::string{": b\r\n\r\n"}, std::string{"A: b\n\r\n"}, std::string{"A: b\r\n\n"},
        std::string{"A: \x01\r\n\r\n"}, "A: " + std::string(20000, 'x') + "\r\n\r\n"}) {
    EXPECT_TRUE(decode("0\r\n" + trailers, 100).failed) << trailers.substr(0, 20);
  }
}

TEST(BodyWithLength, EndsAfterThatManyBytes) {
  const Decoded result = decode("helloGET /", 3, {Framing::Kind::length, 5});
  EXPECT_TRUE(result.done);
  EXPECT_EQ(result.payload, "hello");
  EXPECT_EQ(result.rest, "GET /");
}

TEST(EndOfInput, EndsABodyThatLastsUntilThenAndCutsEveryOther) {
  BodyDecoder until_close({Framing::Kind::until_close});
  until_close.end_of_input();
  EXPECT_TRUE(until_close.done());
  BodyDecoder length({Framing::Kind::length, 5});
  length.end_of_input();
  EXPECT_TRUE(length.failed());
  BodyDecoder chunked({Framing::Kind::chunked});
  chunked.end_of_input();
  EXPECT_TRUE(chunked.failed());
  BodyDecoder none({Framing::Kind::none});
  none.end_of_input();
  EXPECT_TRUE(none.done());
}

}  // namespace
}  // namespace weir::http
