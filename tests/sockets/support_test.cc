// The judges are judged first: the client and the upstream of these tests, against each other.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"

namespace weir::test {
namespace {

TEST(Support, AWholeAnswerIsReadByEachFraming) {
  FakeUpstream upstream(
      in_turn({serve(answer(200, "sized")), serve(chunked_answer({"in ", "chunks"})),
               send_and_close("HTTP/1.0 200 OK\r\n\r\nto the end")}));
  for (const char* body : {"sized", "in chunks", "to the end"}) {
    const Answer answer = get(upstream.port(), "/");
    EXPECT_EQ(answer.body, body);
    EXPECT_TRUE(answer.complete);
  }
}

TEST(Support, ACutAnswerIsNotTakenForAWholeOne) {
  FakeUpstream upstream(
      in_turn({send_and_close("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut"),
               send_and_reset("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
               send_and_reset("HTTP/1.0 200 OK\r\n\r\ncut")}));
  for (const Ending ending : {Ending::fin, Ending::reset, Ending::reset}) {
    const Answer answer = get(upstream.port(), "/");
    EXPECT_FALSE(answer.complete);
    EXPECT_EQ(answer.ending, ending);
  }
}

TEST(Support, MalformedAnswersAreRefused) {
  for (const char* bad :
       {"HTTP/1.1 200 OK\n\n", "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n"}) {
    FakeUpstream upstream(send_and_close(bad));
    EXPECT_THROW(get(upstream.port(), "/"), MalformedMessage) << bad;
  }
}

TEST(Support, TheUpstreamRecordsRequestsAndHowItsPeerLeft) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  RawClient polite(upstream.port());
  polite.send(lines({"POST /a HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) + chunk("body") +
              std::string(last_chunk));
  EXPECT_EQ(polite.read_answer().status, 200);
  polite.close();
  RawClient rude(upstream.port());
  rude.get("/b");
  rude.reset();

  EXPECT_EQ(upstream.wait_for_closing(1).how, Ending::fin);
  EXPECT_EQ(upstream.wait_for_closing(2).how, Ending::reset);
  EXPECT_EQ(upstream.targets(), (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(upstream.requests().at(0).body, "body");
  EXPECT_EQ(upstream.requests().at(1).connection, 2);
}

TEST(Support, ARefusingUpstreamCanComeBack) {
  FakeUpstream upstream(serve(answer(200, "ok")), Start::refusing);
  EXPECT_LT(try_connect(upstream.port()).get(), 0);
  upstream.listen();
  EXPECT_EQ(get(upstream.port(), "/").status, 200);
  upstream.refuse();
  EXPECT_LT(try_connect(upstream.port()).get(), 0);
}

TEST(Support, AnUpstreamMayStopWhateverItsScriptsAreAt) {
  Gate never;
  FakeUpstream upstream([&](UpstreamConnection& connection) { connection.wait(never); });
  RawClient client(upstream.port());
  client.send("GET / HTTP/1.1\r\n\r\n");
}

}  // namespace
}  // namespace weir::test
