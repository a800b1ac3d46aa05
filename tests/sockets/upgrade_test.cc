// Upgrade: a tunnel after the upstream's 101, an ordinary exchange before and without it.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

const std::string upgrade_request =
    lines({"GET /chat HTTP/1.1", "Host: h", "Connection: Upgrade", "Upgrade: websocket",
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"});
const std::string switching =
    lines({"HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket",
           "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="});

Script switch_then(Script tunnel) {
  return after_request([tunnel = std::move(tunnel)](UpstreamConnection& connection) {
    connection.send(switching);
    tunnel(connection);
  });
}

void echo(UpstreamConnection& connection) {
  for (;;) {
    const std::string bytes = connection.socket().read_some();
    if (bytes.empty() || !connection.send(bytes)) return;
  }
}

void expect_switched(RawClient& client) {
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 101);
  EXPECT_TRUE(same_name(answer.fields.get("Upgrade"), "websocket"));
  EXPECT_TRUE(same_name(answer.fields.get("Connection"), "upgrade"));
  EXPECT_EQ(answer.fields.get("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(Upgrade, BytesPassBothWaysAfterTheUpstreams101) {
  FakeUpstream upstream(switch_then(echo));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(upgrade_request);
  expect_switched(client);
  const Received request = upstream.requests().at(0);
  EXPECT_EQ(request.fields.get("Upgrade"), "websocket");
  EXPECT_TRUE(same_name(request.fields.get("Connection"), "upgrade"));
  EXPECT_EQ(request.fields.get("Sec-WebSocket-Key"), "dGhlIHNhbXBsZSBub25jZQ==");
  for (const std::string text :
       {"hello", "GET /poison HTTP/1.1\r\nHost: h\r\n\r\n", "\x81\x05\xff"}) {
    client.send(text);
    EXPECT_EQ(client.read_exactly(text.size()), text);
  }
}

TEST(Upgrade, A101ThatDoesNotSayToWhatIs502) {
  for (const std::string& head :
       {lines({"HTTP/1.1 101 Switching Protocols"}),
        lines({"HTTP/1.1 101 Switching Protocols", "Connection: Upgrade"}),
        lines({"HTTP/1.1 101 Switching Protocols", "Upgrade: websocket"}),
        lines({"HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: h2c"})}) {
    FakeUpstream upstream(send_and_stall(head));
    WeirdProcess weird({.servers = {upstream.url()}});
    RawClient client(weird.port());
    client.send(upgrade_request);
    expect_problem(client.read_answer(), 502, "upstream_failed");
  }
}

TEST(Upgrade, BytesSentAlongWithThe101ReachTheClient) {
  FakeUpstream upstream(after_request(
      [](UpstreamConnection& connection) { connection.send(switching + "first words"); }));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(upgrade_request);
  expect_switched(client);
  EXPECT_EQ(client.read_exactly(11), "first words");
}

TEST(Upgrade, BytesSentEarlyAreNotForwardedBeforeThe101) {
  Gate asked;
  FakeUpstream upstream(after_request([&](UpstreamConnection& connection) {
    asked.open();
    EXPECT_TRUE(connection.socket().quiet_for(300ms)) << "'" << connection.socket().unread() << "'";
    connection.send(switching);
    echo(connection);
  }));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(upgrade_request + "early");
  asked.wait();
  client.send(" bird");
  expect_switched(client);
  EXPECT_EQ(client.read_exactly(10), "early bird");
}

TEST(Upgrade, ARefusalIsAnOrdinaryAnswerAndTheConnectionGoesOn) {
  for (const int status : {200, 400, 426}) {
    FakeUpstream upstream(serve(answer(status, "no")));
    WeirdProcess weird({.servers = {upstream.url()}});
    RawClient client(weird.port());
    client.send(upgrade_request);
    const Answer refusal = client.read_answer();
    EXPECT_EQ(refusal.status, status);
    EXPECT_EQ(refusal.body, "no");
    EXPECT_EQ(client.get("/next").status, status);
    EXPECT_EQ(upstream.targets(), (std::vector<std::string>{"/chat", "/next"}));
  }
}

TEST(Upgrade, WhatWasPipelinedBehindARefusedUpgradeIsARequest) {
  FakeUpstream upstream(serve(answer(200, "no")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(upgrade_request + lines({"GET /next HTTP/1.1", "Host: h"}));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(upstream.targets(), (std::vector<std::string>{"/chat", "/next"}));
}

TEST(Upgrade, H2cIsStrippedAndTheRequestServedAsItIs) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(lines({"GET / HTTP/1.1", "Host: h", "Connection: Upgrade, HTTP2-Settings",
                     "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"}));
  EXPECT_EQ(client.read_answer().status, 200);
  client.send(lines(
      {"GET / HTTP/1.1", "Host: h", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"}));
  EXPECT_EQ(client.read_answer().status, 200);
  for (const Received& request : upstream.requests()) {
    EXPECT_FALSE(request.fields.has("Upgrade"));
    EXPECT_FALSE(request.fields.has("HTTP2-Settings"));
  }
}

TEST(Upgrade, IsNotForwardedUnlessConnectionNamesItAndTheVersionIs11) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}});
  for (const std::string& request :
       {lines({"GET / HTTP/1.1", "Host: h", "Upgrade: websocket"}),
        lines({"GET / HTTP/1.0", "Host: h", "Connection: Upgrade", "Upgrade: websocket"})}) {
    RawClient client(weird.port());
    client.send(request);
    EXPECT_EQ(client.read_answer().status, 200);
    EXPECT_FALSE(upstream.requests().back().fields.has("Upgrade"));
  }
}

TEST(Upgrade, MebibytesPassBothWaysUnharmed) {
  FakeUpstream upstream(switch_then([](UpstreamConnection& connection) {
    connection.send(connection.socket().read_exactly(4 << 20));
  }));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(upgrade_request);
  expect_switched(client);
  const std::string bytes = payload(4 << 20);
  client.send(bytes);
  EXPECT_TRUE(client.read_exactly(bytes.size()) == bytes);
}

TEST(Upgrade, AClientThatFinishesSendingStillGetsTheRest) {
  FakeUpstream upstream(switch_then([](UpstreamConnection& connection) {
    const std::string all = connection.socket().read_to_end();
    connection.send("you said " + all);
    connection.close();
  }));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(upgrade_request);
  expect_switched(client);
  client.send("bye");
  client.finish_sending();
  EXPECT_EQ(client.read_to_end(), "you said bye");
  EXPECT_EQ(client.ending(), Ending::fin);
}

TEST(Upgrade, AnUpstreamThatClosesEndsTheTunnelAfterItsLastByte) {
  FakeUpstream upstream(switch_then([](UpstreamConnection& connection) {
    connection.send("last words");
    connection.close();
  }));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(upgrade_request);
  expect_switched(client);
  EXPECT_EQ(client.read_exactly(10), "last words");
  EXPECT_NE(client.wait_for_end(), Ending::open);
}

TEST(Upgrade, AClientThatLeavesEndsTheTunnel) {
  FakeUpstream upstream(switch_then([](UpstreamConnection&) {}));
  WeirdProcess weird({.servers = {upstream.url()}});
  for (int connection = 1; connection <= 2; ++connection) {
    RawClient client(weird.port());
    client.send(upgrade_request);
    expect_switched(client);
    connection == 1 ? client.close() : client.reset();
    upstream.wait_for_closing(connection);
  }
}

TEST(Upgrade, AResetOfTheUpstreamEndsTheTunnel) {
  FakeUpstream upstream(switch_then([](UpstreamConnection& connection) { connection.reset(); }));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  client.send(upgrade_request);
  client.wait_for_end();
}

}  // namespace
}  // namespace weir::test
