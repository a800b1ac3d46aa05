// An answer that comes before the request's body was read. What is left of the body must neither be
// taken for a request (CVE-2025-4366 elsewhere) nor be read for ever.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

const std::string poison = lines({"GET /poison HTTP/1.1", "Host: poison"});

// Answers on the head alone and reads no body.
Script answer_at_once(std::string reply) {
  return [reply = std::move(reply)](UpstreamConnection& connection) {
    if (!connection.read_head()) return;
    connection.send(reply);
  };
}

// `rest` is the rest of a body that looks like a request. No answer may come to it.
void expect_no_answer_to(RawClient& client, std::string_view rest) {
  client.send(rest);
  client.finish_sending();
  EXPECT_EQ(client.read_to_end(), "");
}

class EarlyAnswer : public testing::Test {
 protected:
  FakeUpstream upstream_{
      in_turn({answer_at_once(answer(413, "too much")), serve(answer(200, "ok"))})};
  WeirdProcess weird_{Config{.servers = {upstream_.url()}, .workers = 1}};
  RawClient client_{weird_.port()};
};

TEST_F(EarlyAnswer, TheRestOfASizedBodyIsNoRequest) {
  client_.send(lines(
      {"POST /first HTTP/1.1", "Host: h", "Content-Length: " + std::to_string(poison.size())}));
  EXPECT_EQ(client_.read_answer().status, 413);
  expect_no_answer_to(client_, poison);
  EXPECT_EQ(upstream_.targets(), std::vector<std::string>{"/first"});
}

TEST_F(EarlyAnswer, TheRestOfAChunkedBodyIsNoRequest) {
  client_.send(lines({"POST /first HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) +
               chunk("a bit"));
  EXPECT_EQ(client_.read_answer().status, 413);
  expect_no_answer_to(client_, chunk(poison) + std::string(last_chunk));
  EXPECT_EQ(upstream_.targets(), std::vector<std::string>{"/first"});
}

TEST_F(EarlyAnswer, TheRestOfALargeBodyIsNoRequest) {
  const std::string filler(1 << 20, 'x');
  client_.send(lines({"POST /first HTTP/1.1", "Host: h",
                      "Content-Length: " + std::to_string(filler.size() + poison.size())}));
  EXPECT_EQ(client_.read_answer().status, 413);
  expect_no_answer_to(client_, filler + poison);
  EXPECT_EQ(upstream_.targets(), std::vector<std::string>{"/first"});
}

TEST_F(EarlyAnswer, APoisonedBodySentAlongWithTheHeadIsNoRequest) {
  client_.send(lines({"POST /first HTTP/1.1", "Host: h",
                      "Content-Length: " + std::to_string(poison.size())}) +
               poison);
  EXPECT_EQ(client_.read_answer().status, 413);
  expect_no_answer_to(client_, "");
  EXPECT_EQ(upstream_.targets(), std::vector<std::string>{"/first"});
}

TEST_F(EarlyAnswer, TheNextRequestOnTheConnectionIsServedOrTheConnectionIsClosed) {
  client_.send(lines({"POST /first HTTP/1.1", "Host: h", "Content-Length: 5"}));
  const Answer first = client_.read_answer();
  EXPECT_EQ(first.body, "too much");
  client_.send("hello" + lines({"GET /next HTTP/1.1", "Host: h", "Connection: close"}));
  if (first.fields.get("Connection") == "close") {
    EXPECT_EQ(client_.read_to_end(), "");
  } else {
    EXPECT_EQ(client_.read_answer().body, "ok");
  }
}

TEST_F(EarlyAnswer, ARestOf64KiBIsReadAndTheConnectionKept) {
  client_.send(lines({"POST /first HTTP/1.1", "Host: h", "Content-Length: 65536"}));
  const Answer first = client_.read_answer();
  EXPECT_EQ(first.status, 413);
  EXPECT_NE(first.fields.get("Connection"), "close");
  client_.send(std::string(65536, 'x'));
  EXPECT_EQ(client_.get("/next").body, "ok");
}

TEST_F(EarlyAnswer, BehindALargerRestTheConnectionIsClosed) {
  client_.send(lines({"POST /first HTTP/1.1", "Host: h", "Content-Length: 65537"}));
  const Answer first = client_.read_answer();
  EXPECT_EQ(first.status, 413);
  EXPECT_EQ(first.fields.get("Connection"), "close");
  expect_no_answer_to(client_, std::string(65537, 'x') + poison);
  EXPECT_EQ(upstream_.targets(), std::vector<std::string>{"/first"});
}

TEST_F(EarlyAnswer, TheUpstreamsConnectionIsNotReused) {
  client_.send(lines({"POST /first HTTP/1.1", "Host: h", "Content-Length: 5"}));
  EXPECT_EQ(client_.read_answer().status, 413);
  EXPECT_EQ(get(weird_.port(), "/next").body, "ok");
  EXPECT_EQ(upstream_.requests().at(1).connection, 2);
  client_.close();
  upstream_.wait_for_closing(1);
}

TEST_F(EarlyAnswer, AnEndlessBodyIsNotDrainedForEver) {
  client_.send(lines({"POST /first HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}));
  EXPECT_EQ(client_.read_answer().status, 413);
  const std::string piece = chunk(std::string(1 << 20, 'x'));
  std::size_t sent = 0;
  const std::size_t too_much = 256u << 20;  // far more than the kernel buffers on the way
  while (sent < too_much) {
    const std::size_t taken = client_.send_until_stuck(piece, 2s);
    sent += taken;
    if (taken < piece.size()) break;
  }
  EXPECT_LT(sent, too_much);
  client_.wait_for_end();
}

TEST(EarlyAnswerOfAClosingUpstream, ReachesTheClientThoughTheBodyCouldNotBeSent) {
  FakeUpstream upstream([](UpstreamConnection& connection) {
    connection.read_head();
    connection.send(answer(413, "too much", {"Connection: close"}));
    connection.finish_sending();
  });
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 8388608"}));
  client.send_until_stuck(std::string(8 << 20, 'x'), 1s);
  EXPECT_EQ(client.read_answer().status, 413);
}

// The client sends all of its body before it looks for an answer, and the answer is larger than
// what it takes meanwhile: closed too soon, the connection would be reset and the rest of it lost.
void expect_whole_answer_to_an_upload(std::string_view bytes) {
  const std::string too_much = payload(1 << 20);
  Gate answer_read;
  FakeUpstream upstream(
      [&](UpstreamConnection& connection) {
        connection.read_head();
        connection.send(answer(413, too_much));
        connection.wait(answer_read);
      },
      Start::listening, /*receive_buffer=*/16 << 10);
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port(), /*receive_buffer=*/16 << 10);
  EXPECT_TRUE(client.send(bytes));
  const Answer got = client.read_answer();
  answer_read.open();
  EXPECT_EQ(got.status, 413);
  EXPECT_TRUE(got.body == too_much) << got.body.size() << " bytes of " << too_much.size();
  EXPECT_EQ(client.wait_for_end(), Ending::fin);
}

TEST(EarlyAnswerToALargeUpload, ReachesTheClientWhole) {
  const std::string body(20'000'000, 'x');
  expect_whole_answer_to_an_upload(
      lines({"POST / HTTP/1.1", "Host: h", "Content-Length: " + std::to_string(body.size())}) +
      body);
}

TEST(EarlyAnswerToALargeUpload, ReachesTheClientWholeBehindChunksToo) {
  const std::string head = lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"});
  expect_whole_answer_to_an_upload(head + chunk(std::string(20'000'000, 'x')) +
                                   std::string(last_chunk));
}

TEST(EarlyAnswerOfOurOwn, TheBodyOfARequestWhoseUpstreamIsDownIsNoRequest) {
  FakeUpstream upstream(serve(answer(200, "ok")), Start::refusing);
  WeirdProcess weird({.servers = {upstream.url()}});
  for (const std::string& body : {poison, std::string(1 << 20, 'x') + poison}) {
    RawClient client(weird.port());
    client.send(
        lines({"POST / HTTP/1.1", "Host: h", "Content-Length: " + std::to_string(body.size())}));
    expect_problem(client.read_answer(), 502, "upstream_unreachable");
    expect_no_answer_to(client, body);
  }
  weird.wait_for_metric("weir_requests_total", {}, 2);
  EXPECT_EQ(weird.metric("weir_requests_total"), 2);
}

TEST(EarlyAnswerOfOurOwn, TheBodyOfARequestThatIsTurnedAwayIsNoRequest) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()},
                      .default_rule = "{limit: 1, window: 1h, wait: 0s, resource: all}"});
  EXPECT_EQ(get(weird.port(), "/").status, 200);
  const std::string large = std::string(1 << 20, 'x') + poison;
  for (const std::string& body : {poison, large}) {
    for (const std::string& bytes :
         {lines({"POST / HTTP/1.1", "Host: h", "Content-Length: " + std::to_string(body.size())}) +
              body,
          lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) + chunk(body) +
              std::string(last_chunk)}) {
      RawClient client(weird.port());
      client.send(bytes);
      expect_problem(client.read_answer(), 429, "limit");
      expect_no_answer_to(client, "");
    }
  }
  EXPECT_EQ(upstream.targets(), std::vector<std::string>{"/"});
}

TEST(EarlyAnswerOfOurOwn, TheBodyOfARequestWithAnUnknownExpectationIsNoRequest) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"POST / HTTP/1.1", "Host: h", "Expect: miracles",
                     "Content-Length: " + std::to_string(poison.size())}));
  expect_problem(client.read_answer(), 417);
  expect_no_answer_to(client, poison);
  EXPECT_EQ(upstream.connections(), 0);
}

TEST(EarlyAnswerOfOurOwn, AnExpectedBodyThatIsNotWantedIsNoRequestEither) {
  FakeUpstream upstream(serve(answer(200, "ok")), Start::refusing);
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"POST / HTTP/1.1", "Host: h", "Expect: 100-continue",
                     "Content-Length: " + std::to_string(poison.size())}));
  Answer answer = client.read_answer();
  if (answer.status == 100) answer = client.read_answer();
  EXPECT_EQ(answer.status, 502);
  // A client that was told no may well go on with a new request instead of the body; then only
  // closing keeps the two sides from reading it differently.
  expect_no_answer_to(client, poison);
}

}  // namespace
}  // namespace weir::test
