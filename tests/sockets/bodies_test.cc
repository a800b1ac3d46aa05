// Bodies on their way through: framing made anew, nothing kept, nothing lost.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

// Weir in front of an upstream that answers with the body it got.
class Bodies : public testing::Test {
 protected:
  Answer ask(std::string_view request) {
    client_.send(request);
    return client_.read_answer();
  }
  Received received() { return upstream_.requests().back(); }

  FakeUpstream upstream_{serve([](const Received& request) { return answer(200, request.body); })};
  WeirdProcess weird_{Config{.servers = {upstream_.url()}}};
  RawClient client_{weird_.port()};
};

TEST_F(Bodies, ABodyOfKnownLengthStaysOne) {
  const Answer answer = ask(lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 5"}) + "hello");
  EXPECT_EQ(received().body, "hello");
  EXPECT_EQ(received().fields.get("Content-Length"), "5");
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.framing, Framing::length);
}

TEST_F(Bodies, AnEmptyBodyIsStillABodyOfLengthZero) {
  EXPECT_EQ(ask(lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 0"})).status, 200);
  EXPECT_EQ(received().body, "");
  EXPECT_EQ(ask(lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) +
                std::string(last_chunk))
                .status,
            200);
  EXPECT_TRUE(received().body_complete);
  EXPECT_EQ(received().body, "");
}

TEST_F(Bodies, AChunkedBodyStaysChunkedAndLosesItsExtensionsAndTrailers) {
  const Answer answer =
      ask(lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) +
          "5;name=value;q=\"x\"\r\nhello\r\n" + "00A\r\n, chunks!!\r\n" +
          "0\r\nX-Forwarded-For: 6.6.6.6\r\nContent-Length: 99\r\nX-Sum: 1\r\n\r\n");
  EXPECT_EQ(answer.body, "hello, chunks!!");
  EXPECT_EQ(received().body, "hello, chunks!!");
  EXPECT_EQ(received().fields.get("Transfer-Encoding"), "chunked");
  EXPECT_EQ(received().trailers, "");
  EXPECT_EQ(received().fields.get("X-Forwarded-For"), "127.0.0.1");
}

TEST_F(Bodies, FramingFieldsAreMadeAnew) {
  // Legal, if odd. They may be refused, but not passed on as they came.
  const std::vector<std::string> odd_requests{
      lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 005"}) + "hello",
      lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: CHUNKED"}) + chunk("hello") +
          std::string(last_chunk)};
  for (const std::string& odd : odd_requests) {
    RawClient client(weird_.port());
    client.send(odd);
    const Answer answer = client.read_answer();
    if (answer.status == 400) continue;
    EXPECT_EQ(answer.body, "hello");
    EXPECT_NE(received().fields.get("Content-Length"), "005");
    EXPECT_NE(received().fields.get("Transfer-Encoding"), "CHUNKED");
  }
}

TEST_F(Bodies, EveryByteValuePassesUnharmed) {
  std::string bytes;
  for (int value = 0; value < 256; ++value) bytes.push_back(static_cast<char>(value));
  const Answer answer = ask(lines({"POST /grpc.Service/Method HTTP/1.1", "Host: h",
                                   "Content-Type: application/grpc+proto", "grpc-timeout: 1S",
                                   "grpc-encoding: gzip", "Content-Length: 256"}) +
                            bytes);
  EXPECT_EQ(received().body, bytes);
  EXPECT_EQ(received().fields.get("Content-Type"), "application/grpc+proto");
  EXPECT_EQ(received().fields.get("grpc-encoding"), "gzip");
  EXPECT_EQ(answer.body, bytes);
}

TEST_F(Bodies, ABodyThatTricklesInArrivesWhole) {
  client_.send(lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}));
  for (const char byte : chunk("drop by") + chunk(" drop") + std::string(last_chunk)) {
    client_.send(std::string(1, byte));
  }
  EXPECT_EQ(client_.read_answer().body, "drop by drop");
}

constexpr std::size_t large = 20 << 20;

TEST(LargeBodies, TwentyMebibytesAreUploadedUnharmedByLengthAndInChunks) {
  FakeUpstream upstream(serve(answer(200, "got it")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  const std::string bytes = payload(large);

  client.send(lines({"POST / HTTP/1.1", "Host: h", "Content-Length: " + std::to_string(large)}) +
              bytes);
  EXPECT_EQ(client.read_answer().body, "got it");
  EXPECT_TRUE(upstream.requests().at(0).body == bytes);

  client.send(lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) +
              chunk(bytes.substr(0, 1)) + chunk(bytes.substr(1)) + std::string(last_chunk));
  EXPECT_EQ(client.read_answer().body, "got it");
  EXPECT_TRUE(upstream.requests().at(1).body == bytes);
}

TEST(LargeBodies, TwentyMebibytesAreDownloadedUnharmedByLengthInChunksAndUntilClose) {
  const std::string bytes = payload(large);
  FakeUpstream upstream([&](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target == "/length") connection.send(answer(200, bytes));
      if (request->target == "/chunks") connection.send(chunked_answer({bytes}));
      if (request->target == "/close") {
        connection.send("HTTP/1.1 200 OK\r\n\r\n");
        connection.send(bytes);
        return connection.close();
      }
    }
  });
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  for (const char* target : {"/length", "/chunks", "/close"}) {
    const Answer answer = client.get(target);
    EXPECT_TRUE(answer.complete) << target;
    EXPECT_TRUE(answer.body == bytes) << target;
  }
}

TEST(BodiesOfAnswers, AChunkedAnswerLosesItsExtensionsAndTrailers) {
  FakeUpstream upstream(
      serve("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
            "3;a=b\r\none\r\n3\r\ntwo\r\n0\r\nX-Sum: 1\r\nSet-Cookie: x=y\r\n\r\n"));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  for (int time = 0; time < 2; ++time) {
    const Answer answer = client.get("/");
    EXPECT_EQ(answer.framing, Framing::chunked);
    EXPECT_EQ(answer.body, "onetwo");
    EXPECT_EQ(answer.trailers, "");
    EXPECT_FALSE(answer.fields.has("Set-Cookie"));
  }
  EXPECT_EQ(upstream.connections(), 1);
}

TEST(BodiesOfAnswers, ABodyIsPassedOnAsItComesNotWhenItIsWhole) {
  Gate first_part_seen;
  FakeUpstream upstream(after_request([&](UpstreamConnection& connection) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfirst");
    connection.wait(first_part_seen);
    connection.send("last");
  }));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"GET / HTTP/1.1", "Host: h"}));
  client.read_through("first");
  first_part_seen.open();
  EXPECT_EQ(client.read_exactly(4), "last");
}

TEST(BodiesOfAnswers, AnUploadIsPassedOnAsItComesNotWhenItIsWhole) {
  Gate first_part_seen;
  FakeUpstream upstream([&](UpstreamConnection& connection) {
    connection.read_head();
    EXPECT_EQ(connection.socket().read_exactly(5), "first");
    first_part_seen.open();
    EXPECT_EQ(connection.socket().read_exactly(4), "last");
    connection.send(answer(200, "ok"));
  });
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 9"}) + "first");
  first_part_seen.wait();
  client.send("last");
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(BodiesOfAnswers, HeadGetsTheHeadAndNoBody) {
  FakeUpstream upstream([](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target == "/length")
        connection.send(lines({"HTTP/1.1 200 OK", "Content-Length: 5"}));
      if (request->target == "/chunked") {
        connection.send(lines({"HTTP/1.1 200 OK", "Transfer-Encoding: chunked"}));
      }
      if (request->target == "/neither") connection.send(lines({"HTTP/1.1 200 OK"}));
      if (request->method == "GET") connection.send(answer(200, "still here"));
    }
  });
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  for (const std::string target : {"/length", "/chunked", "/neither"}) {
    client.send(lines({"HEAD " + target + " HTTP/1.1", "Host: h"}));
    const Answer answer = client.read_answer("HEAD");
    EXPECT_EQ(answer.status, 200);
    if (target == "/length") {
      EXPECT_EQ(answer.fields.get("Content-Length"), "5");
    }
  }
  // Had any of them sent a body, this would read it as its answer.
  EXPECT_EQ(client.get("/").body, "still here");
}

TEST(BodiesOfAnswers, NoContentAndNotModifiedHaveNoBody) {
  FakeUpstream upstream([](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target == "/204")
        connection.send(lines({"HTTP/1.1 204 No Content", "ETag: \"a\""}));
      if (request->target == "/304") {
        connection.send(lines({"HTTP/1.1 304 Not Modified", "ETag: \"a\"", "Content-Length: 12"}));
      }
      if (request->target == "/") connection.send(answer(200, "still here"));
    }
  });
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  for (const std::string status : {"204", "304"}) {
    const Answer answer = client.get("/" + status);
    EXPECT_EQ(std::to_string(answer.status), status);
    EXPECT_EQ(answer.fields.get("ETag"), "\"a\"");
    EXPECT_FALSE(answer.fields.has("Transfer-Encoding"));
    EXPECT_EQ(client.get("/").body, "still here");
  }
  EXPECT_EQ(upstream.connections(), 1);
}

}  // namespace
}  // namespace weir::test
