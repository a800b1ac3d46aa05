// A client that goes away takes its upstream call with it; one that is slow slows the upstream
// down, and costs no memory.

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

using std::chrono::steady_clock;

const auto at_once = sanitized ? 4s : 1s;

void leave(RawClient& client, Ending how) {
  how == Ending::reset ? client.reset() : client.close();
}

TEST(ClientGone, WhileTheUpstreamThinksTheCallIsCancelledAtOnce) {
  FakeUpstream upstream(send_and_stall(""));
  WeirdProcess weird({.servers = {upstream.url()}});
  int connection = 0;
  for (const Ending how : {Ending::fin, Ending::reset}) {
    RawClient client(weird.port());
    client.send(lines({"GET / HTTP/1.1", "Host: h"}));
    upstream.wait_for_requests(static_cast<std::size_t>(++connection));
    const auto left = steady_clock::now();
    leave(client, how);
    EXPECT_LT(upstream.wait_for_closing(connection).when - left, at_once) << how;
  }
  weird.wait_for_metric("weir_requests_total", {{"outcome", "client_gone"}}, 2);
}

TEST(ClientGone, IsNoticedThoughMoreRequestsArePipelinedBehind) {
  FakeUpstream upstream(send_and_stall(""));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"GET /1 HTTP/1.1", "Host: h"}) + lines({"GET /2 HTTP/1.1", "Host: h"}) +
              lines({"GET /3 HTTP/1.1", "Host: h"}));
  upstream.wait_for_requests(1);
  const auto left = steady_clock::now();
  client.close();
  EXPECT_LT(upstream.wait_for_closing(1).when - left, at_once);
  // What was pipelined has nobody left to answer to.
  weird.wait_for_metric("weir_requests_total", {{"outcome", "client_gone"}}, 1);
  EXPECT_EQ(upstream.targets(), std::vector<std::string>{"/1"});
}

TEST(ClientGone, WhileUploadingTheUpstreamSeesTheBodyCut) {
  const std::vector<std::string> uploads{
      lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 1000000"}) + std::string(5000, 'x'),
      lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) +
          chunk(std::string(5000, 'x')),
      lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) + "5\r\nhel"};
  for (const Ending how : {Ending::fin, Ending::reset}) {
    FakeUpstream upstream(serve(answer(200, "ok")));
    WeirdProcess weird({.servers = {upstream.url()}});
    for (std::size_t i = 0; i < uploads.size(); ++i) {
      RawClient client(weird.port());
      client.send(uploads[i]);
      upstream.wait_for_requests(i + 1);
      const auto left = steady_clock::now();
      leave(client, how);
      EXPECT_LT(upstream.wait_for_closing(static_cast<int>(i) + 1).when - left, at_once);
      EXPECT_FALSE(upstream.requests().at(i).body_complete);
    }
  }
}

TEST(ClientGone, TogetherWithTheLastOfItsBodyTheCallIsCancelledToo) {
  FakeUpstream upstream(send_and_stall(""));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 5"}));
  upstream.wait_for_requests(1);
  // So that Weir hears of the bytes and of the end at once.
  weird.signal(SIGSTOP);
  client.send("hello");
  client.close();
  weird.signal(SIGCONT);
  const auto left = steady_clock::now();
  EXPECT_LT(upstream.wait_for_closing(1).when - left, at_once);
  weird.wait_for_metric("weir_requests_total", {{"outcome", "client_gone"}}, 1);
}

TEST(ClientGone, WhileDownloadingTheUpstreamIsToldToStop) {
  FakeUpstream upstream(after_request([](UpstreamConnection& connection) {
    connection.send(lines({"HTTP/1.1 200 OK", "Transfer-Encoding: chunked"}));
    const std::string piece = chunk(std::string(65536, 'x'));
    while (connection.send(piece)) {
    }
  }));
  WeirdProcess weird({.servers = {upstream.url()}});
  int connection = 0;
  for (const Ending how : {Ending::fin, Ending::reset}) {
    RawClient client(weird.port());
    client.send(lines({"GET / HTTP/1.1", "Host: h"}));
    client.read_exactly(1 << 20);
    const auto left = steady_clock::now();
    leave(client, how);
    EXPECT_LT(upstream.wait_for_closing(++connection).when - left, at_once);
  }
}

TEST(ClientGone, ADownloadThatPausesIsCancelledToo) {
  FakeUpstream upstream(send_and_stall("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"GET / HTTP/1.1", "Host: h"}));
  client.read_through("half");
  const auto left = steady_clock::now();
  client.close();
  EXPECT_LT(upstream.wait_for_closing(1).when - left, at_once);
}

TEST(ClientGone, ManyAtOnceLeaveNothingBehind) {
  FakeUpstream upstream(send_and_stall(""));
  WeirdProcess weird({.servers = {upstream.url()}});
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back(weird.port());
    clients.back().send(lines({"GET / HTTP/1.1", "Host: h"}));
  }
  upstream.wait_for_requests(50);
  for (RawClient& client : clients) client.reset();
  for (int connection = 1; connection <= 50; ++connection) upstream.wait_for_closing(connection);
  weird.wait_for_metric("weir_requests_total", {{"outcome", "client_gone"}}, 50);
}

constexpr std::size_t stream_size = 200u << 20;
// What the kernel may buffer on two connections, with room to spare.
constexpr std::size_t on_the_way = 64u << 20;
constexpr long growth_kib = 32 << 10;

void expect_little_growth(const WeirdProcess& weird, long before_kib) {
  if (sanitized) return;
  EXPECT_LT(weird.resident_kib() - before_kib, growth_kib);
}

TEST(Backpressure, AStalledClientStopsTheUpstreamAndMemoryStaysFlat) {
  const std::string piece(1 << 20, 'x');
  std::atomic<std::size_t> pushed{0};
  Gate stuck;
  FakeUpstream upstream(after_request([&](UpstreamConnection& connection) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(stream_size) +
                    "\r\n\r\n");
    std::size_t rest = 0;  // of the piece that got stuck
    while (rest == 0 && pushed < stream_size) {
      const std::size_t taken = connection.socket().send_until_stuck(piece, 500ms);
      pushed += taken;
      rest = piece.size() - taken;
    }
    stuck.open();
    connection.send(std::string_view(piece).substr(0, rest));
    for (std::size_t sent = pushed + rest; sent < stream_size; sent += piece.size()) {
      if (!connection.send(piece)) return;
    }
  }));
  WeirdProcess weird({.servers = {upstream.url()}});
  const long before = weird.resident_kib();
  RawClient client(weird.port());
  client.send(lines({"GET / HTTP/1.1", "Host: h"}));
  stuck.wait();
  EXPECT_LT(pushed, on_the_way);
  expect_little_growth(weird, before);

  // And once it reads again, it gets everything.
  client.read_through("\r\n\r\n");
  std::size_t received = 0;
  while (received < stream_size) received += client.read_some().size();
  EXPECT_EQ(received, stream_size);
  expect_little_growth(weird, before);
}

TEST(Backpressure, AStalledUpstreamStopsTheClientAndMemoryStaysFlat) {
  Gate go_on;
  std::atomic<std::size_t> received{0};
  FakeUpstream upstream([&](UpstreamConnection& connection) {
    connection.read_head();
    connection.wait(go_on);
    while (received < stream_size) {
      const std::size_t count = connection.socket().read_some().size();
      if (count == 0) return;
      received += count;
    }
    connection.send(answer(200, "all of it"));
  });
  WeirdProcess weird({.servers = {upstream.url()}});
  const long before = weird.resident_kib();
  RawClient client(weird.port());
  client.send(
      lines({"POST / HTTP/1.1", "Host: h", "Content-Length: " + std::to_string(stream_size)}));
  const std::string bytes(stream_size, 'x');
  const std::size_t pushed = client.send_until_stuck(bytes, 500ms);
  EXPECT_LT(pushed, on_the_way);
  expect_little_growth(weird, before);

  go_on.open();
  client.send(std::string_view(bytes).substr(pushed));
  EXPECT_EQ(client.read_answer().body, "all of it");
  EXPECT_EQ(received, stream_size);
  expect_little_growth(weird, before);
}

}  // namespace
}  // namespace weir::test
