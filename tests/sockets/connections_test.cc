// One connection, several requests: keep-alive, pipelining, and the older protocol on either side.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

// Answers with what was asked for: "GET /a" or "POST /b body".
std::string echo(const Received& request) {
  return answer(200, request.method + " " + request.target + " " + request.body);
}

class Connections : public testing::Test {
 protected:
  FakeUpstream upstream_{serve(echo)};
  WeirdProcess weird_{Config{.servers = {upstream_.url()}}};
  RawClient client_{weird_.port()};
};

TEST_F(Connections, AConnectionServesManyRequestsAndSoDoesTheOneToTheUpstream) {
  for (int i = 0; i < 20; ++i) {
    const std::string target = "/" + std::to_string(i);
    EXPECT_EQ(client_.get(target).body, "GET " + target + " ");
  }
  EXPECT_EQ(upstream_.connections(), 1);
}

TEST_F(Connections, CloseInTheRequestClosesAfterTheAnswer) {
  client_.send(lines({"GET / HTTP/1.1", "Host: h", "Connection: close"}) +
               lines({"GET /poison HTTP/1.1", "Host: h"}));
  const Answer answer = client_.read_answer();
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.fields.get("Connection"), "close");
  EXPECT_EQ(client_.read_to_end(), "");
  EXPECT_EQ(upstream_.targets(), std::vector<std::string>{"/"});
}

TEST_F(Connections, PipelinedRequestsAreAnsweredInOrderThoughOneHasABody) {
  client_.send(lines({"GET /1 HTTP/1.1", "Host: h"}) + lines({"GET /2 HTTP/1.1", "Host: h"}) +
               lines({"POST /3 HTTP/1.1", "Host: h", "Content-Length: 4"}) + "body" +
               lines({"GET /4 HTTP/1.1", "Host: h"}) +
               lines({"POST /5 HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) +
               chunk("chunks") + std::string(last_chunk) + lines({"GET /6 HTTP/1.1", "Host: h"}));
  for (const char* body :
       {"GET /1 ", "GET /2 ", "POST /3 body", "GET /4 ", "POST /5 chunks", "GET /6 "}) {
    EXPECT_EQ(client_.read_answer().body, body);
  }
}

TEST_F(Connections, AHundredPipelinedRequestsAreAllAnswered) {
  std::string requests;
  for (int i = 0; i < 100; ++i) {
    requests += lines({"GET /" + std::to_string(i) + " HTTP/1.1", "Host: h"});
  }
  client_.send(requests);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(client_.read_answer().body, "GET /" + std::to_string(i) + " ");
  }
}

TEST_F(Connections, ARequestMayArriveByteByByte) {
  for (const char byte : lines({"GET /slow HTTP/1.1", "Host: h"}))
    client_.send(std::string(1, byte));
  EXPECT_EQ(client_.read_answer().body, "GET /slow ");
}

TEST_F(Connections, BothHalvesOfAPipelineMayArriveSplitAnywhere) {
  const std::string requests = lines({"POST /1 HTTP/1.1", "Host: h", "Content-Length: 4"}) +
                               "body" + lines({"GET /2 HTTP/1.1", "Host: h"});
  for (std::size_t cut = 1; cut < requests.size(); cut += 7) {
    client_.send(requests.substr(0, cut));
    client_.send(requests.substr(cut));
    EXPECT_EQ(client_.read_answer().body, "POST /1 body");
    EXPECT_EQ(client_.read_answer().body, "GET /2 ");
  }
}

TEST_F(Connections, ManyConnectionsAreServedAtOnce) {
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) clients.emplace_back(weird_.port());
  for (RawClient& client : clients) client.send(lines({"GET /x HTTP/1.1", "Host: h"}));
  for (RawClient& client : clients) EXPECT_EQ(client.read_answer().body, "GET /x ");
}

TEST_F(Connections, Http10ClosesAfterTheAnswer) {
  client_.send(lines({"GET /old HTTP/1.0", "Host: h"}));
  const Answer answer = client_.read_answer();
  EXPECT_EQ(answer.body, "GET /old ");
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(client_.wait_for_end(), Ending::fin);
  EXPECT_EQ(upstream_.requests().at(0).version, "HTTP/1.1");
}

TEST_F(Connections, Http10KeepsTheConnectionIfAskedTo) {
  for (const std::string target : {"/1", "/2"}) {
    client_.send(lines({"GET " + target + " HTTP/1.0", "Host: h", "Connection: keep-alive"}));
    const Answer answer = client_.read_answer();
    EXPECT_EQ(answer.body, "GET " + target + " ");
    EXPECT_TRUE(same_name(answer.fields.get("Connection"), "keep-alive"));
  }
}

TEST(OldClients, ABodyOfUnknownLengthEndsWithTheConnection) {
  FakeUpstream upstream(in_turn({send_and_close(chunked_answer({"in ", "chunks"})),
                                 send_and_close("HTTP/1.1 200 OK\r\n\r\nto the end")}));
  WeirdProcess weird({.servers = {upstream.url()}});
  for (const char* body : {"in chunks", "to the end"}) {
    RawClient client(weird.port());
    // Asking to keep the connection must not help: nothing else could tell the end.
    client.send(lines({"GET / HTTP/1.0", "Host: h", "Connection: keep-alive"}));
    const Answer answer = client.read_answer();
    EXPECT_EQ(answer.framing, Framing::until_close);
    EXPECT_FALSE(answer.fields.has("Transfer-Encoding"));
    EXPECT_EQ(answer.body, body);
    EXPECT_EQ(answer.ending, Ending::fin);
  }
}

TEST(OldUpstreams, AnAnswerUntilCloseBecomesChunked) {
  FakeUpstream upstream(
      send_and_close("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nto the end"));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  for (int time = 0; time < 2; ++time) {
    const Answer answer = client.get("/");
    EXPECT_EQ(answer.version, "HTTP/1.1");
    EXPECT_EQ(answer.framing, Framing::chunked);
    EXPECT_EQ(answer.body, "to the end");
    EXPECT_TRUE(answer.complete);
  }
}

TEST(OldUpstreams, AConnectionIsNotReusedUnlessTheUpstreamSaysSo) {
  FakeUpstream upstream(
      in_turn({send_and_stall("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nfirst"),
               serve("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
                     "Content-Length: 4\r\n\r\nnext")}));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/").body, "first");
  EXPECT_EQ(client.get("/").body, "next");
  EXPECT_EQ(client.get("/").body, "next");
}

TEST(OldUpstreams, AnHttp11UpstreamThatSaysCloseIsNotReused) {
  FakeUpstream upstream(in_turn(
      {send_and_stall(answer(200, "first", {"Connection: close"})), serve(answer(200, "next"))}));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/").body, "first");
  EXPECT_EQ(client.get("/").body, "next");
  EXPECT_EQ(upstream.connections(), 2);
}

}  // namespace
}  // namespace weir::test
