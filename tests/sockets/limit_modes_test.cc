// What a unit is, and when it comes back: sliding, in_flight, until_done, shadow; and what an
// attempt costs that came to nothing.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/answers.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

// Answers each request when its gate opens; targets without a gate at once.
class HeldUpstream {
 public:
  explicit HeldUpstream(std::initializer_list<const char*> held) {
    for (const char* target : held) gates_[target];
  }
  void let_go(const std::string& target) { gates_.at(target).open(); }

 private:
  std::map<std::string, Gate> gates_;

 public:
  FakeUpstream upstream{[this](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      const auto gate = gates_.find(request->target);
      if (gate != gates_.end()) connection.wait(gate->second);
      connection.send(answer(200, "ok"));
    }
  }};
};

Config limited(const FakeUpstream& upstream, const std::string& limit) {
  return {.servers = {upstream.url()}, .default_rule = "{resource: all, " + limit + "}"};
}

TEST(InFlight, R5_AUnitIsFreeAgainWhenItsRequestEnds) {
  HeldUpstream held{"/1", "/2"};
  WeirdProcess weird(limited(held.upstream, "limit: 2, mode: in_flight"));
  RawClient one = asking(weird, "/1"), two = asking(weird, "/2");
  held.upstream.wait_for_requests(2);
  auto line = lined_up(weird, {"/3", "/4"});
  EXPECT_TRUE(line[0].quiet_for(300ms));
  EXPECT_EQ(held.upstream.requests().size(), 2u);
  held.let_go("/2");
  EXPECT_EQ(two.read_answer().status, 200);
  for (RawClient& client : line) EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(held.upstream.targets(),
            (std::vector<std::string>{held.upstream.targets()[0], held.upstream.targets()[1], "/3",
                                      "/4"}));
  held.let_go("/1");
  EXPECT_EQ(one.read_answer().status, 200);
}

TEST(InFlight, FieldsNameTheConcurrencyAndNoTime) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird(limited(upstream, "limit: 2, mode: in_flight"));
  const Answer answer = get(weird.port(), "/");
  EXPECT_EQ(answer.fields.get("RateLimit-Policy"), "\"default\";q=2;qu=\"concurrent-requests\"");
  EXPECT_EQ(answer.fields.get("RateLimit"), "\"default\";r=1");
}

TEST(InFlight, EveryWayOutOfARequestFreesItsUnit) {
  FakeUpstream upstream([](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target == "/close") return connection.close();
      if (request->target == "/reset") return connection.reset();
      if (request->target == "/garbage") {
        connection.send("garbage\r\n\r\n");
        return connection.close();
      }
      if (request->target == "/half") {
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        return connection.close();
      }
      if (request->target == "/stall") return connection.wait_for_peer_to_leave();
      connection.send(answer(200, "ok"));
    }
  });
  Config config = limited(upstream, "limit: 1, mode: in_flight");
  config.upstream = "response_timeout: 300ms";
  WeirdProcess weird(config);
  EXPECT_EQ(get(weird.port(), "/close").status, 502);
  EXPECT_EQ(get(weird.port(), "/reset").status, 502);
  EXPECT_EQ(get(weird.port(), "/garbage").status, 502);
  EXPECT_FALSE(get(weird.port(), "/half").complete);
  EXPECT_EQ(get(weird.port(), "/stall").status, 504);
  {
    RawClient leaves = asking(weird, "/stall");
    upstream.wait_for_requests(6);
  }
  EXPECT_EQ(get(weird.port(), "/").status, 200);
  EXPECT_EQ(weird.metric("weir_units_total", {{"event", "spent"}}), 7);
}

TEST(InFlight, ATunnelHoldsItsUnitToItsEnd) {
  FakeUpstream upstream([](UpstreamConnection& connection) {
    const auto request = connection.read_request();
    if (!request) return;
    if (!request->fields.has("Upgrade")) {
      connection.send(answer(200, "ok"));
      return;
    }
    connection.send(
        lines({"HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"}));
  });
  WeirdProcess weird(limited(upstream, "limit: 1, mode: in_flight"));
  RawClient tunnel = asking(weird, "/", {"Connection: Upgrade", "Upgrade: websocket"});
  const Answer switched = tunnel.read_answer();
  EXPECT_EQ(switched.status, 101);
  EXPECT_EQ(switched.fields.get("RateLimit"), "\"default\";r=0");
  auto line = lined_up(weird, {"/"});
  EXPECT_TRUE(line[0].quiet_for(200ms));
  tunnel.close();
  EXPECT_EQ(line[0].read_answer().status, 200);
}

TEST(UntilDone, R5_AUnitIsFreeWhenItsRequestEndsOrTheWindowDoes) {
  HeldUpstream held{"/1", "/2", "/3"};
  WeirdProcess weird(limited(held.upstream, "limit: 2, window: 3s, mode: until_done"));
  wait_for_window(3s);
  RawClient one = asking(weird, "/1"), two = asking(weird, "/2");
  held.upstream.wait_for_requests(2);
  auto line = lined_up(weird, {"/early"});
  held.let_go("/2");
  EXPECT_EQ(line[0].read_answer().status, 200) << "before the window's end";
  const long first = window_of(held.upstream.requests()[0].arrived, 3s);
  EXPECT_EQ(window_of(held.upstream.requests()[2].arrived, 3s), first);

  // /1 is still under way when its window ends: it gives nothing back to the next.
  wait_for_window(3s);
  RawClient three = asking(weird, "/3");
  held.upstream.wait_for_requests(4);
  RawClient four = asking(weird, "/4");
  EXPECT_EQ(four.read_answer().status, 200);
  RawClient five = asking(weird, "/5");
  EXPECT_EQ(five.read_answer().status, 200) << "/4 has ended";
  held.let_go("/1");
  EXPECT_EQ(one.read_answer().status, 200);
  held.let_go("/3");
  EXPECT_EQ(three.read_answer().status, 200);
}

TEST(UntilDone, R5_AnEndBehindTheWindowsEndFreesNothing) {
  HeldUpstream held{"/1", "/2", "/3"};
  WeirdProcess weird(limited(held.upstream, "limit: 2, window: 3s, mode: until_done"));
  wait_for_window(3s);
  RawClient one = asking(weird, "/1");
  held.upstream.wait_for_requests(1);
  wait_for_window(3s);
  RawClient two = asking(weird, "/2"), three = asking(weird, "/3");
  held.upstream.wait_for_requests(3);
  auto line = lined_up(weird, {"/4"});
  held.let_go("/1");
  EXPECT_EQ(one.read_answer().status, 200);
  EXPECT_TRUE(line[0].quiet_for(500ms)) << "three are held in one window";
  held.let_go("/2");
  EXPECT_EQ(line[0].read_answer().status, 200);
  held.let_go("/3");
}

TEST(Sliding, NoIntervalOfTheWindowsLengthHasMore) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird(limited(upstream, "limit: 3, window: 1s, mode: sliding"));
  wait_for_window(1s, 500ms);  // an aligned window would end in the midst of it
  std::vector<RawClient> clients;
  for (int i = 0; i < 9; ++i) clients.push_back(asking(weird, "/"));
  for (RawClient& client : clients) EXPECT_EQ(client.read_answer().status, 200);
  auto requests = upstream.requests();
  std::ranges::sort(requests, {}, &Received::arrived);
  for (std::size_t i = 3; i < requests.size(); ++i) {
    EXPECT_GE(requests[i].arrived - requests[i - 3].arrived, 1s) << i;
  }
  EXPECT_LT(requests.back().arrived - requests.front().arrived, sanitized ? 6s : 4s);
}

TEST(Shadow, HoldsNobodyBackAndCountsWhomItWouldHave) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  for (const std::string mode : {"mode: started, window: 24h", "mode: sliding, window: 24h"}) {
    WeirdProcess weird(limited(upstream, "limit: 2, shadow: true, " + mode));
    RawClient client(weird.port());
    for (int i = 0; i < 5; ++i) {
      const Answer answer = client.get("/");
      EXPECT_EQ(answer.status, 200);
      EXPECT_TRUE(answer.fields.get("RateLimit")
                      .starts_with(i == 0 ? "\"default\";r=1" : "\"default\";r=0"))
          << answer.fields.get("RateLimit");
    }
    weird.wait_for_metric("weir_requests_total", {{"outcome", "shadow_denied"}}, 3);
    EXPECT_EQ(weird.metric("weir_requests_total", {{"outcome", "shadow_denied"}}), 3);
    EXPECT_EQ(weird.metric("weir_requests_total", {{"outcome", "ok"}}), 2);
  }
}

TEST(Units, ARefusedConnectionSpendsNothing) {
  FakeUpstream upstream(serve(answer(200, "ok")), Start::refusing);
  WeirdProcess weird(limited(upstream, "limit: 1, window: 24h, wait: 0s"));
  RawClient client(weird.port());
  for (int i = 0; i < 3; ++i) expect_problem(client.get("/"), 502, "upstream_unreachable");
  EXPECT_EQ(weird.metric("weir_units_total", {{"event", "spent"}}), 0);
  upstream.listen();
  EXPECT_EQ(client.get("/").status, 200);
  EXPECT_EQ(client.get("/").status, 429);
}

// Answers once; then takes the next request and leaves without a word.
void leave_when_asked_again(UpstreamConnection& connection) {
  if (!connection.read_request()) return;
  connection.send(answer(200, "first"));
  if (!connection.read_request()) return;
  connection.close();
}

TEST(Units, ARequestSentOnAStaleConnectionHasSpentOneAndItsReplacementNeedsAnother) {
  for (const int limit : {2, 3}) {
    FakeUpstream upstream(in_turn({leave_when_asked_again, serve(answer(200, "second"))}));
    WeirdProcess weird(
        limited(upstream, "limit: " + std::to_string(limit) + ", window: 24h, wait: forever"));
    RawClient client(weird.port());
    EXPECT_EQ(client.get("/1").body, "first");
    const Answer second = client.get("/2");
    EXPECT_EQ(second.status, limit == 3 ? 200 : 502);
    EXPECT_EQ(upstream.requests().size(), static_cast<std::size_t>(limit));
    EXPECT_EQ(weird.metric("weir_units_total", {{"event", "spent"}}), limit);
  }
}

TEST(Units, InFlightAStaleConnectionIsReplacedWithinTheSameUnit) {
  FakeUpstream upstream(in_turn({leave_when_asked_again, serve(answer(200, "second"))}));
  WeirdProcess weird(limited(upstream, "limit: 1, mode: in_flight"));
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").body, "first");
  EXPECT_EQ(client.get("/2").body, "second");
  EXPECT_EQ(client.get("/3").body, "second");
}

TEST(Units, BadRequestsAndUnlimitedRulesSpendNothing) {
  FakeUpstream upstream(serve(answer(200, "ok", {"RateLimit: \"theirs\";r=1"})));
  Config config = limited(upstream, "limit: 1, window: 24h, wait: 0s");
  config.rest = "rules:\n  - {name: free, match: {path: /free}, unlimited: true}";
  WeirdProcess weird(config);
  EXPECT_EQ(get(weird.port(), "/%00").status, 400);
  for (int i = 0; i < 5; ++i) {
    const Answer free = get(weird.port(), "/free");
    EXPECT_EQ(free.status, 200);
    EXPECT_FALSE(free.fields.has("RateLimit-Policy"));
    EXPECT_EQ(free.fields.get("RateLimit"), "\"theirs\";r=1");
  }
  EXPECT_EQ(get(weird.port(), "/").status, 200);
  EXPECT_EQ(get(weird.port(), "/").status, 429);
}

}  // namespace
}  // namespace weir::test
