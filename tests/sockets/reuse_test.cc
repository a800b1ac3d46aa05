// Refused servers and stale connections: what is mended without the client noticing, and what must
// not be.

#include <gtest/gtest.h>

#include <array>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

const std::string post = lines({"POST /pay HTTP/1.1", "Host: h", "Content-Length: 3"}) + "100";

// Answers once; then takes the next request and leaves without a word.
Script leave_when_asked_again(Ending how) {
  return [how](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.send(answer(200, "first"));
    if (!connection.read_request()) return;
    how == Ending::fin ? connection.close() : connection.reset();
  };
}

TEST(Refused, AllServersRefusingIs502) {
  FakeUpstream one(serve(answer(200, "ok")), Start::refusing);
  FakeUpstream two(serve(answer(200, "ok")), Start::refusing);
  WeirdProcess weird({.servers = {one.url(), two.url()}});
  RawClient client(weird.port());
  for (int time = 0; time < 3; ++time) {
    const Answer answer = client.get("/");
    expect_problem(answer, 502, "upstream_unreachable");
    EXPECT_FALSE(answer.fields.has("Retry-After"));
  }
}

TEST(Refused, ARefusedConnectionPassesToTheNextServerWhateverTheMethod) {
  FakeUpstream down(serve(answer(200, "ok")), Start::refusing);
  FakeUpstream up(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {down.url(), up.url()}});
  for (int time = 0; time < 4; ++time) {
    RawClient client(weird.port());
    EXPECT_EQ(client.get("/").status, 200);
    client.send(post);
    EXPECT_EQ(client.read_answer().status, 200);
    EXPECT_EQ(up.requests().back().body, "100");
  }
}

TEST(Refused, AServerThatCannotBeReachedIsPassedOverForAWhile) {
  FullBacklog down;
  FakeUpstream up(serve(answer(200, "ok", {"Connection: close"})));
  WeirdProcess weird(
      {.servers = {down.url(), up.url()}, .upstream = "connect_timeout: 1s", .workers = 1});
  RawClient client(weird.port());
  const auto start = std::chrono::steady_clock::now();
  for (int time = 0; time < 20; ++time) EXPECT_EQ(client.get("/").status, 200);
  // Had every other request tried it first, that would have been 10 seconds.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 7s);
}

TEST(StaleConnection, IsReplacedForAGet) {
  for (const Ending how : {Ending::fin, Ending::reset}) {
    FakeUpstream upstream(in_turn({leave_when_asked_again(how), serve(answer(200, "second"))}));
    WeirdProcess weird({.servers = {upstream.url()}});
    RawClient client(weird.port());
    EXPECT_EQ(client.get("/1").body, "first");
    EXPECT_EQ(client.get("/2").body, "second");
    EXPECT_EQ(upstream.targets(), (std::vector<std::string>{"/1", "/2", "/2"}));
  }
}

TEST(StaleConnection, IsNotReplacedForAPostThatWasSent) {
  for (const Ending how : {Ending::fin, Ending::reset}) {
    FakeUpstream upstream(in_turn({leave_when_asked_again(how), serve(answer(200, "second"))}));
    WeirdProcess weird({.servers = {upstream.url()}});
    RawClient client(weird.port());
    EXPECT_EQ(client.get("/1").body, "first");
    client.send(post);
    expect_problem(client.read_answer(), 502, "upstream_failed");
    EXPECT_EQ(upstream.targets(), (std::vector<std::string>{"/1", "/pay"})) << "paid twice";
  }
}

TEST(StaleConnection, IsReplacedEvenForAPostIfNothingWasWrittenToIt) {
  Gate answered, closed;
  FakeUpstream upstream(in_turn({after_request([&](UpstreamConnection& connection) {
                                   connection.send(answer(200, "first"));
                                   connection.wait(answered);
                                   connection.close();
                                   closed.open();
                                 }),
                                 serve(answer(200, "second"))}));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").body, "first");
  answered.open();
  closed.wait();
  client.send(post);
  EXPECT_EQ(client.read_answer().body, "second");
  EXPECT_EQ(upstream.requests().back().body, "100");
}

TEST(StaleConnection, IsReplacedByAFreshOneNotByAnotherStaleOne) {
  // Three requests at once leave three idle connections behind, all of which are stale by the next.
  const Script stale = leave_when_asked_again(Ending::fin);
  FakeUpstream upstream(in_turn({stale, stale, stale, serve(answer(200, "fresh"))}));
  WeirdProcess weird({.servers = {upstream.url()}, .workers = 1});
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) clients.emplace_back(weird.port());
  for (RawClient& client : clients) client.send(lines({"GET / HTTP/1.1", "Host: h"}));
  for (RawClient& client : clients) EXPECT_EQ(client.read_answer().status, 200);
  for (int time = 0; time < 4; ++time) EXPECT_EQ(clients[0].get("/again").status, 200);
}

TEST(StaleConnection, IsReplacedOnceNotForEver) {
  FakeUpstream upstream(in_turn({leave_when_asked_again(Ending::fin), send_and_close("")}));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").body, "first");
  expect_problem(client.get("/2"), 502, "upstream_failed");
  EXPECT_EQ(upstream.connections(), 2);
}

TEST(StaleConnection, OnceAByteOfTheAnswerHasComeIsNotReplaced) {
  FakeUpstream upstream(in_turn({[](UpstreamConnection& connection) {
                                   if (!connection.read_request()) return;
                                   connection.send(answer(200, "first"));
                                   if (!connection.read_request()) return;
                                   connection.send("HTTP/1.1 2");
                                   connection.close();
                                 },
                                 serve(answer(200, "second"))}));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").body, "first");
  expect_problem(client.get("/2"), 502, "upstream_failed");
  EXPECT_EQ(upstream.connections(), 1);
}

TEST(StaleConnection, AnUpstreamThatClosesAfterAFewRequestsIsNoticedByNobody) {
  FakeUpstream upstream([](UpstreamConnection& connection) {
    for (int i = 0; i < 3; ++i) {
      if (!connection.read_request()) return;
      connection.send(answer(200, "ok"));
    }
    connection.close();
  });
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  for (int i = 0; i < 30; ++i) EXPECT_EQ(client.get("/").status, 200);
}

TEST(KeptConnection, IsClosedBeforeAServerOfOrdinarySettingsWouldCloseIt) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}, .workers = 1});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").status, 200);
  EXPECT_EQ(client.get("/2").status, 200);
  EXPECT_EQ(upstream.connections(), 1);
  const Closing closing = upstream.wait_for_closing(1);
  EXPECT_EQ(closing.how, Ending::fin);
  // About 4 seconds: many servers close after 5.
  const auto idle = closing.when - upstream.requests().at(1).arrived;
  EXPECT_GT(idle, 3500ms);
  EXPECT_LT(idle, 7s);
  // The client's own connection is another matter.
  EXPECT_EQ(client.get("/3").status, 200);
  EXPECT_EQ(upstream.connections(), 2);
}

// A server that accepts one at a time between other work lets new connections wait behind the kept
// ones, so that to close what is needed again at once shows as a long tail.
TEST(KeptConnection, ThereIsOneForEachOfThoseThatWereServedAtOnce) {
  constexpr std::size_t kAtOnce = 600;
  std::array<Gate, 4> rounds;
  FakeUpstream upstream([&](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      connection.wait(rounds[std::stoul(request->target.substr(1))]);
      connection.send(answer(200, "ok"));
    }
  });
  WeirdProcess weird({.servers = {upstream.url()}, .workers = 1});
  std::vector<RawClient> clients;
  while (clients.size() < kAtOnce) clients.emplace_back(weird.port());
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    const int before = upstream.connections();
    for (RawClient& client : clients)
      client.send(lines({"GET /" + std::to_string(round) + " HTTP/1.1", "Host: h"}));
    upstream.wait_for_requests(kAtOnce * (round + 1));
    rounds[round].open();
    for (RawClient& client : clients) ASSERT_EQ(client.read_answer().status, 200);
    // On a machine that is slow enough some were idle for too long, which one round may be.
    if (round > 0 && upstream.connections() == before) return;
  }
  ADD_FAILURE() << upstream.connections() << " connections were made for " << kAtOnce << " at once";
}

TEST(KeptConnection, MayWaitLongerForAnAnswerThanItMayBeIdle) {
  FakeUpstream upstream([](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.send(answer(200, "first"));
    if (!connection.read_request()) return;
    EXPECT_TRUE(connection.socket().quiet_for(5s));
    connection.send(answer(200, "second"));
  });
  WeirdProcess weird({.servers = {upstream.url()}, .workers = 1});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").body, "first");
  EXPECT_EQ(client.get("/2").body, "second");
  EXPECT_EQ(upstream.connections(), 1);
}

}  // namespace
}  // namespace weir::test
