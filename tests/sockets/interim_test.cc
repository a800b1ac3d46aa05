// Interim answers: 100 Continue is a matter between the client and Weir, 103 is passed on.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

TEST(ExpectContinue, WeirAnswers100ItselfAndForwardsNoExpect) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"POST / HTTP/1.1", "Host: h", "Expect: 100-continue", "Content-Length: 5"}));
  const Answer go_on = client.read_answer();
  EXPECT_EQ(go_on.status, 100);
  client.send("hello");
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(upstream.requests().at(0).body, "hello");
  EXPECT_FALSE(upstream.requests().at(0).fields.has("Expect"));
  // The connection goes on as if nothing had been special.
  EXPECT_EQ(client.get("/").status, 200);
}

TEST(ExpectContinue, AChunkedBodyMayBeHeldBackToo) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(
      lines({"PUT / HTTP/1.1", "Host: h", "Expect: 100-Continue", "Transfer-Encoding: chunked"}));
  EXPECT_EQ(client.read_answer().status, 100);
  client.send(chunk("hello") + std::string(last_chunk));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(upstream.requests().at(0).body, "hello");
}

TEST(ExpectContinue, AClientThatDidNotWaitGetsItsAnswer) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"POST / HTTP/1.1", "Host: h", "Expect: 100-continue", "Content-Length: 5"}) +
              "hello");
  Answer answer = client.read_answer();
  if (answer.status == 100) answer = client.read_answer();  // a server may leave it out
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(upstream.requests().at(0).body, "hello");
}

TEST(ExpectContinue, An10ClientGetsNo100) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"POST / HTTP/1.0", "Host: h", "Expect: 100-continue", "Content-Length: 5"}) +
              "hello");
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(Interim, EarlyHintsAreForwardedToHttp11Clients) {
  FakeUpstream upstream(serve(lines({"HTTP/1.1 103 Early Hints", "Link: </a.css>; rel=preload"}) +
                              lines({"HTTP/1.1 103 Early Hints", "Link: </b.css>; rel=preload"}) +
                              answer(200, "final")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  for (int time = 0; time < 2; ++time) {
    const Answer first = client.get("/");
    EXPECT_EQ(first.status, 103);
    EXPECT_EQ(first.fields.get("Link"), "</a.css>; rel=preload");
    EXPECT_EQ(client.read_answer().fields.get("Link"), "</b.css>; rel=preload");
    EXPECT_EQ(client.read_answer().body, "final");
  }
}

TEST(Interim, EarlyHintsArriveBeforeTheAnswerIsThere) {
  Gate hint_seen;
  FakeUpstream upstream(after_request([&](UpstreamConnection& connection) {
    connection.send(lines({"HTTP/1.1 103 Early Hints", "Link: </a.css>"}));
    connection.wait(hint_seen);
    connection.send(answer(200, "final"));
  }));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/").status, 103);
  hint_seen.open();
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(Interim, Http10ClientsGetNoInterimAnswers) {
  FakeUpstream upstream(serve(lines({"HTTP/1.1 103 Early Hints", "Link: </a.css>"}) +
                              lines({"HTTP/1.1 100 Continue"}) + answer(200, "final")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"GET / HTTP/1.0", "Host: h"}));
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "final");
}

TEST(Interim, OneThatTheClientTookHalfOfIsTheLastThingItGets) {
  const std::string hint =
      lines({"HTTP/1.1 103 Early Hints", "Link: </" + std::string(50'000, 'a') + ".css>"});
  FakeUpstream upstream(after_request([&](UpstreamConnection& connection) {
    // More than the kernel holds on the way to a client that does not read.
    for (int i = 0; i < 1'000 && connection.send(hint); ++i) {
    }
  }));
  WeirdProcess weird({.servers = {upstream.url()}, .rest = "timeouts: {body_idle: 400ms}"});
  RawClient client(weird.port(), /*receive_buffer=*/16 << 10);
  client.send(lines({"GET / HTTP/1.1", "Host: h"}));
  upstream.wait_for_closing(1);

  const std::string got = client.read_to_end();
  const std::string whole = got.substr(0, got.find("\r\n\r\n") + 4);
  std::size_t at = 0;
  while (got.compare(at, whole.size(), whole) == 0) at += whole.size();
  EXPECT_GT(at, 0u);
  EXPECT_TRUE(whole.starts_with(got.substr(at))) << "something came behind a piece of an answer";
}

TEST(Interim, AnUpstreams100ThatNobodyAskedForHarmsNothing) {
  FakeUpstream upstream(serve(lines({"HTTP/1.1 100 Continue"}) + answer(200, "final")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  for (int time = 0; time < 2; ++time) {
    client.send(lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 2"}) + "hi");
    Answer answer = client.read_answer();
    while (answer.status == 100) answer = client.read_answer();
    EXPECT_EQ(answer.body, "final");
  }
  EXPECT_EQ(upstream.connections(), 1);
}

}  // namespace
}  // namespace weir::test
