// Each way an upstream can fail a request. The client gets 502 or 504 that says why, or a
// connection that visibly ends too early: never a hang, and never part of an answer as if it were
// the whole.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

using std::chrono::steady_clock;

// Each connection meets the next of `faults`; each request gets one connection, so one fault.
void expect_each_fails(const std::vector<Script>& faults, int status, std::string_view reason,
                       const std::string& upstream_options = "") {
  FakeUpstream upstream(in_turn(faults));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = upstream_options});
  for (std::size_t i = 0; i < faults.size(); ++i) {
    SCOPED_TRACE("fault number " + std::to_string(i));
    RawClient client(weird.port());
    const Answer answer = client.get("/");
    expect_problem(answer, status, reason);
    EXPECT_FALSE(answer.fields.has("Retry-After"));
    EXPECT_EQ(upstream.connections(), static_cast<int>(i) + 1);
  }
}

TEST(UpstreamFaults, ClosedBeforeTheWholeHeadIs502) {
  expect_each_fails(
      {send_and_close(""), send_and_reset(""), send_and_close("HTTP/1.1 200 O"),
       send_and_reset("HTTP/1.1 200 O"), send_and_close("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"),
       send_and_reset("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"),
       send_and_close(lines({"HTTP/1.1 100 Continue"}))},
      502, "upstream_failed");
}

TEST(UpstreamFaults, ClosedWithoutEvenReadingIs502) {
  FakeUpstream upstream(in_turn({[](UpstreamConnection& connection) { connection.close(); },
                                 [](UpstreamConnection& connection) { connection.reset(); }}));
  WeirdProcess weird({.servers = {upstream.url()}});
  for (int time = 0; time < 2; ++time) expect_problem(get(weird.port(), "/"), 502);
}

TEST(UpstreamFaults, GarbageIs502) {
  using namespace std::string_literals;
  expect_each_fails(
      {send_and_stall("\x15\x03\x01\x00\x02\x02\x46garbage\r\n\r\n"s),
       send_and_stall("220 smtp.example\r\n\r\n"), send_and_stall("HTTP/1.1 OK\r\n\r\n"),
       send_and_stall("HTTP/1.1 99999 OK\r\n\r\n"),
       send_and_stall("HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
       send_and_stall("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX\r\n\r\n"),
       send_and_stall("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n: x\r\n\r\n"),
       send_and_stall("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: a\0b\r\n\r\n"s),
       send_and_stall("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: a\rb\r\n\r\n")},
      502, "upstream_failed");
}

TEST(UpstreamFaults, ABodyThatIsBrokenBeforeTheHeadWentOutIs502) {
  expect_each_fails({send_and_stall("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n")},
                    502, "upstream_failed");
}

TEST(UpstreamFaults, AmbiguousFramingIs502) {
  expect_each_fails(
      {send_and_stall(
           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
       send_and_stall("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
       send_and_stall("HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nabc"),
       send_and_stall("HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nab"),
       send_and_stall("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nab"),
       send_and_stall("HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nab"),
       send_and_stall("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
       send_and_stall("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")},
      502, "upstream_failed");
}

TEST(UpstreamFaults, AHeadWithoutEndIs502) {
  expect_each_fails({send_and_stall("HTTP/1.1 200 OK\r\nX: " + std::string(4 << 20, 'x'))}, 502,
                    "upstream_failed");
}

TEST(UpstreamFaults, AHeadThatFillsAllItMayTakeWithoutEndIsNoHttp) {
  const std::string begin = "HTTP/1.1 200 OK\r\nX: ";
  FakeUpstream upstream(send_and_stall(begin + std::string(65536 - begin.size(), 'x')));
  WeirdProcess weird({.servers = {upstream.url()}});
  const Answer answer = get(weird.port(), "/");
  expect_problem(answer, 502, "upstream_failed");
  EXPECT_NE(answer.body.find("the answer was not HTTP"), std::string::npos) << answer.body;
}

TEST(UpstreamFaults, SwitchingProtocolsUnaskedIs502) {
  expect_each_fails({send_and_stall(lines({"HTTP/1.1 101 Switching Protocols",
                                           "Connection: upgrade", "Upgrade: websocket"}))},
                    502, "upstream_failed");
}

TEST(UpstreamFaults, NoAnswerInTimeIs504) {
  const auto start = steady_clock::now();
  expect_each_fails({send_and_stall(""), send_and_stall("HTTP/1.1 200 OK\r\nContent-Le")}, 504,
                    "upstream_timeout", "response_timeout: 300ms");
  EXPECT_GE(steady_clock::now() - start, 600ms);
}

TEST(UpstreamFaults, AHeadThatTricklesInTooSlowlyIs504) {
  expect_each_fails({after_request([](UpstreamConnection& connection) {
                      const std::string head = "HTTP/1.1 200 OK\r\nX: " + std::string(2000, 'x');
                      for (const char byte : head) {
                        if (!connection.send(std::string(1, byte))) return;
                        if (!connection.socket().quiet_for(20ms)) return;
                      }
                    })},
                    504, "upstream_timeout", "response_timeout: 300ms");
}

TEST(UpstreamFaults, InterimAnswersDoNotPutOffTheTimeout) {
  expect_each_fails({after_request([](UpstreamConnection& connection) {
                      while (connection.send(lines({"HTTP/1.1 100 Continue"})) &&
                             connection.socket().quiet_for(20ms)) {
                      }
                    })},
                    504, "upstream_timeout", "response_timeout: 300ms");
}

TEST(UpstreamFaults, AnUpstreamThatNeverReadsABodyIs504) {
  Gate never;
  FakeUpstream upstream([&](UpstreamConnection& connection) { connection.wait(never); },
                        Start::listening,
                        /*receive_buffer=*/4096);
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = "response_timeout: 500ms"});
  RawClient client(weird.port());
  const std::string body(64 << 20, 'x');
  client.send(
      lines({"POST / HTTP/1.1", "Host: h", "Content-Length: " + std::to_string(body.size())}));
  EXPECT_LT(client.send_until_stuck(body, 300ms), body.size());
  expect_problem(client.read_answer(), 504, "upstream_timeout");
}

TEST(UpstreamFaults, AnUpstreamThatNeverAcceptsIs502Or504) {
  FullBacklog upstream;
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = "connect_timeout: 300ms"});
  const Answer answer = get(weird.port(), "/");
  EXPECT_TRUE(answer.status == 502 || answer.status == 504) << answer.status;
  expect_problem(answer, answer.status);
}

TEST(UpstreamFaults, ASlowClientIsNotTakenForASlowUpstream) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = "response_timeout: 500ms"});
  RawClient client(weird.port());
  client.send(lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 2"}) + "a");
  EXPECT_TRUE(client.quiet_for(1s)) << "longer than response_timeout, and nobody's fault";
  client.send("b");
  EXPECT_EQ(client.read_answer().status, 200);
}

// A body that stops early. The answer may be refused as a whole if nothing of it had gone out yet.
void expect_cut(const Answer& answer) {
  if (answer.status == 502 || answer.status == 504) return expect_problem(answer, answer.status);
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.complete) << "part of a body was passed off as the whole: " << answer.body;
  EXPECT_NE(answer.ending, Ending::open);
}

const std::string sized =
    "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + std::string(50000, 'x');
const std::string in_chunks =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(std::string(50000, 'x'));
const std::string in_half_a_chunk =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n" + std::string(50000, 'x');
const std::string until_close = "HTTP/1.1 200 OK\r\n\r\n" + std::string(50000, 'x');

TEST(UpstreamFaults, ABodyCutShortIsVisiblyCutForAnHttp11Client) {
  const std::vector<Script> faults{
      send_and_close(sized),           send_and_reset(sized),
      send_and_close(in_chunks),       send_and_reset(in_chunks),
      send_and_close(in_half_a_chunk), send_and_reset(in_half_a_chunk),
      send_and_reset(until_close),     send_and_close(in_chunks + "0\r\n"),
      send_and_close(in_chunks + "0"),
  };
  FakeUpstream upstream(in_turn(faults));
  WeirdProcess weird({.servers = {upstream.url()}});
  for (std::size_t i = 0; i < faults.size(); ++i) {
    SCOPED_TRACE("fault number " + std::to_string(i));
    expect_cut(get(weird.port(), "/"));
  }
}

TEST(UpstreamFaults, ABodyCutShortIsAResetForAnHttp10ClientWhoseBodyEndsWithTheConnection) {
  const std::vector<Script> faults{send_and_close(in_chunks), send_and_reset(in_chunks),
                                   send_and_reset(until_close)};
  FakeUpstream upstream(in_turn(faults));
  WeirdProcess weird({.servers = {upstream.url()}});
  for (std::size_t i = 0; i < faults.size(); ++i) {
    SCOPED_TRACE("fault number " + std::to_string(i));
    RawClient client(weird.port());
    client.send(lines({"GET / HTTP/1.0", "Host: h"}));
    expect_cut(client.read_answer());
  }
}

TEST(UpstreamFaults, ABadChunkCutsTheBody) {
  const std::vector<Script> faults{
      send_and_stall(in_chunks + "xyz\r\n"),
      send_and_stall(in_chunks + "5\nhello\r\n"),
      send_and_stall(in_chunks + "5\r\nhello!\r\n"),
      send_and_stall(in_chunks + "FFFFFFFFFFFFFFFFF\r\n"),
      send_and_stall(in_chunks + "-1\r\n"),
  };
  FakeUpstream upstream(in_turn(faults));
  WeirdProcess weird({.servers = {upstream.url()}});
  for (std::size_t i = 0; i < faults.size(); ++i) {
    SCOPED_TRACE("fault number " + std::to_string(i));
    expect_cut(get(weird.port(), "/"));
  }
}

TEST(UpstreamFaults, ABodyThatStallsLongerThanResponseTimeoutIsCut) {
  const std::vector<Script> faults{send_and_stall(sized), send_and_stall(in_chunks),
                                   send_and_stall(until_close)};
  FakeUpstream upstream(in_turn(faults));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = "response_timeout: 300ms"});
  for (int i = 1; i <= 3; ++i) {
    SCOPED_TRACE("fault number " + std::to_string(i));
    expect_cut(get(weird.port(), "/"));
    upstream.wait_for_closing(i);
  }
}

TEST(UpstreamFaults, ABodyMayTakeLongerThanResponseTimeoutIfItKeepsComing) {
  FakeUpstream upstream(after_request([](UpstreamConnection& connection) {
    connection.send(lines({"HTTP/1.1 200 OK", "Content-Length: 5"}));
    for (int i = 0; i < 5; ++i) {
      if (!connection.socket().quiet_for(300ms)) return;
      connection.send("x");
    }
  }));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = "response_timeout: 1s"});
  EXPECT_EQ(get(weird.port(), "/").body, "xxxxx");
}

TEST(UpstreamFaults, BytesBehindAnAnswerAreNeverTheNextAnswer) {
  FakeUpstream upstream(serve(answer(200, "good") + answer(200, "evil")));
  WeirdProcess weird({.servers = {upstream.url()}, .workers = 1});
  RawClient client(weird.port());
  for (int time = 0; time < 5; ++time) EXPECT_EQ(client.get("/").body, "good");
  EXPECT_EQ(upstream.connections(), 5);
}

TEST(UpstreamFaults, AnAnswerNobodyAskedForIsNeverTheNextAnswer) {
  Gate answered, sent;
  FakeUpstream upstream(in_turn({after_request([&](UpstreamConnection& connection) {
                                   connection.send(answer(200, "good"));
                                   connection.wait(answered);
                                   connection.send(answer(200, "evil"));
                                   sent.open();
                                 }),
                                 serve(answer(200, "good"))}));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/").body, "good");
  answered.open();
  sent.wait();
  EXPECT_EQ(client.get("/").body, "good");
}

TEST(UpstreamFaults, TheClientsConnectionGoesOnAfterAFaultThatLeftItWhole) {
  FakeUpstream upstream(in_turn({send_and_close(""), serve(answer(200, "ok"))}));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  const Answer fault = client.get("/");
  EXPECT_EQ(fault.status, 502);
  if (fault.fields.get("Connection") == "close") {
    EXPECT_EQ(client.read_to_end(), "");
  } else {
    EXPECT_EQ(client.get("/").body, "ok");
  }
}

}  // namespace
}  // namespace weir::test
