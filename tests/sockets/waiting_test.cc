// The line: who is next, how long one waits, how one leaves it, and what ends it.

#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/support/answers.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

using std::chrono::steady_clock;

// One at a time passes; the first is held at the upstream until `go_on` opens, so that the others
// wait.
class Waiting : public testing::Test {
 protected:
  explicit Waiting(const std::string& rule = "", const std::string& rest = "")
      : weird_(config(rule, rest)) {
    first_.send(lines({"GET /first HTTP/1.1", "Host: h"}));
    upstream_.wait_for_requests(1);
  }

  Config config(const std::string& rule, const std::string& rest) const {
    return {.servers = {upstream_.url()},
            .rest = rest,
            .drain_timeout = "30s",
            .default_rule = "{resource: all, limit: 1, mode: in_flight" + rule + "}"};
  }
  double ended(const std::string& outcome) {
    return weird_.metric("weir_requests_total", {{"outcome", outcome}});
  }

  Gate go_on_;
  FakeUpstream upstream_{[this](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target == "/first") connection.wait(go_on_);
      connection.send(answer(200, "ok"));
    }
  }};
  WeirdProcess weird_;
  RawClient first_{weird_.port()};
};

TEST_F(Waiting, IsInOrderOfArrivalWhicheverWorkerOneIsOn) {
  const std::vector<std::string> targets{"/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8"};
  auto line = lined_up(weird_, targets);
  go_on_.open();
  for (RawClient& client : line) EXPECT_EQ(client.read_answer().status, 200);
  auto served = upstream_.targets();
  served.erase(served.begin());
  EXPECT_EQ(served, targets);
}

TEST_F(Waiting, TheAnswerSaysHowLongAndOnlyIfOneDid) {
  auto line = lined_up(weird_, {"/"});
  EXPECT_TRUE(line[0].quiet_for(300ms));
  go_on_.open();
  EXPECT_FALSE(first_.read_answer().fields.has("Weir-Waited-Ms"));
  EXPECT_GE(std::stoi(line[0].read_answer().fields.get("Weir-Waited-Ms")), 300);
}

TEST_F(Waiting, WhoLeavesIsOutOfTheLineAtOnceAndHasSpentNothing) {
  auto line = lined_up(weird_, {"/closes", "/half-closes", "/resets", "/stays"});
  line[0].close();
  wait_for_line(weird_, 3);
  line[1].finish_sending();
  wait_for_line(weird_, 2);
  line[2].reset();
  wait_for_line(weird_, 1);
  EXPECT_EQ(ended("client_gone"), 3);
  EXPECT_EQ(weird_.metric("weir_units_total", {{"event", "spent"}}), 1);
  go_on_.open();
  EXPECT_EQ(line[3].read_answer().status, 200);
  EXPECT_EQ(upstream_.targets(), (std::vector<std::string>{"/first", "/stays"}));
}

TEST_F(Waiting, ABodyWaitsWithItsRequest) {
  RawClient client(weird_.port());
  const std::string body = payload(200'000);
  client.send(lines({"POST /post HTTP/1.1", "Host: h", "Content-Length: 200000"}) +
              body.substr(0, 10));
  wait_for_line(weird_, 1);
  client.send_until_stuck(std::string_view(body).substr(10, 50'000), 100ms);
  go_on_.open();
  client.send(std::string_view(body).substr(50'010));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(upstream_.requests().back().body, body);
}

TEST_F(Waiting, NobodyIsToldToGoOnWithABodyBefore) {
  RawClient client(weird_.port());
  client.send(
      lines({"POST /post HTTP/1.1", "Host: h", "Content-Length: 2", "Expect: 100-continue"}));
  wait_for_line(weird_, 1);
  EXPECT_TRUE(client.quiet_for(200ms));
  go_on_.open();
  EXPECT_EQ(client.read_answer().status, 100);
  client.send("hi");
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST_F(Waiting, ThenTheConnectionGoesOn) {
  RawClient client(weird_.port());
  client.send(lines({"GET /1 HTTP/1.1", "Host: h"}) + lines({"GET /2 HTTP/1.1", "Host: h"}));
  wait_for_line(weird_, 1);
  go_on_.open();
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(upstream_.targets(), (std::vector<std::string>{"/first", "/1", "/2"}));
}

TEST_F(Waiting, SigtermEmptiesTheLineAndLetsTheOthersFinish) {
  auto line = lined_up(weird_, {"/1", "/2", "/3"});
  weird_.signal(SIGTERM);
  for (RawClient& client : line) {
    const Answer answer = client.read_answer();
    expect_problem(answer, 503, "draining");
    EXPECT_GE(std::stoi(answer.fields.get("Retry-After")), 1);
    EXPECT_EQ(answer.fields.get("Connection"), "close");
    EXPECT_TRUE(answer.fields.has("RateLimit-Policy"));
    client.wait_for_end();
  }
  go_on_.open();
  EXPECT_EQ(first_.read_answer().status, 200);
  const auto exit = weird_.wait_for_exit();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
  EXPECT_EQ(upstream_.targets(), (std::vector<std::string>{"/first"}));
}

TEST_F(Waiting, ASecondSigtermCutsWhatIsUnderWay) {
  weird_.signal(SIGTERM);
  ASSERT_TRUE(weird_.wait_for_log("draining"));
  weird_.signal(SIGTERM);
  ASSERT_TRUE(weird_.wait_for_exit());
  first_.wait_for_end();
}

class FairLine : public Waiting {
 protected:
  FairLine() : Waiting(", queue: fair", "tenant: header:x-tenant") {}
};

TEST_F(FairLine, ServesOneOfEachTenantInTurn) {
  std::vector<RawClient> line;
  const auto join = [&](const std::string& target, const std::string& tenant) {
    line.push_back(asking(weird_, target, {"X-Tenant: " + tenant}));
    wait_for_line(weird_, static_cast<int>(line.size()));
  };
  for (const char* target : {"/a1", "/a2", "/a3", "/a4"}) join(target, "a");
  for (const char* target : {"/b1", "/b2"}) join(target, "b");
  join("/c1", "c");
  go_on_.open();
  for (RawClient& client : line) EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(upstream_.targets(),
            (std::vector<std::string>{"/first", "/a1", "/b1", "/c1", "/a2", "/b2", "/a3", "/a4"}));
}

class ShortWait : public Waiting {
 protected:
  ShortWait() : Waiting(", wait: 400ms") {}
};

TEST_F(ShortWait, EndsWith429WhenItHasRunOut) {
  const auto start = steady_clock::now();
  auto line = lined_up(weird_, {"/1"});
  const Answer answer = line[0].read_answer();
  EXPECT_GE(steady_clock::now() - start, 400ms);
  expect_problem(answer, 429, "limit");
  EXPECT_EQ(answer.fields.get("Retry-After"), "1");
  wait_for_line(weird_, 0);
  weird_.wait_for_metric("weir_requests_total", {{"outcome", "limit"}}, 1);
  EXPECT_EQ(ended("limit"), 1);
  go_on_.open();
  EXPECT_EQ(line[0].get("/2").status, 200) << "on the same connection";
  EXPECT_EQ(upstream_.targets(), (std::vector<std::string>{"/first", "/2"}));
}

TEST_F(ShortWait, IsAsGoodAsALongOneIfItIsLongEnough) {
  auto line = lined_up(weird_, {"/1"});
  go_on_.open();
  EXPECT_EQ(line[0].read_answer().status, 200);
}

class NoWait : public Waiting {
 protected:
  NoWait() : Waiting(", wait: 0s") {}
};

TEST_F(NoWait, Is429AtOnce) {
  RawClient client(weird_.port());
  client.send(lines({"POST /1 HTTP/1.1", "Host: h", "Content-Length: 4"}) + "body");
  const Answer answer = client.read_answer();
  expect_problem(answer, 429, "limit");
  EXPECT_EQ(nlohmann::json::parse(answer.body).at("resource"), "all");
  go_on_.open();
  EXPECT_EQ(first_.read_answer().status, 200);
  // Its unit comes free when it is settled, which is after the answer has gone out.
  const auto deadline = steady_clock::now() + patience;
  int status = client.get("/2").status;
  while (status != 200 && steady_clock::now() < deadline) status = client.get("/2").status;
  EXPECT_EQ(status, 200);
}

class FullRoom : public Waiting {
 protected:
  FullRoom() : Waiting("", "max_waiting: 2") {}
};

TEST_F(FullRoom, OneTooManyIs503QueueFull) {
  auto line = lined_up(weird_, {"/1", "/2"});
  const Answer answer = get(weird_.port(), "/3");
  expect_problem(answer, 503, "queue_full");
  EXPECT_GE(std::stoi(answer.fields.get("Retry-After")), 1);
  EXPECT_EQ(get(weird_.port(), "/3").status, 503);
  line.pop_back();
  wait_for_line(weird_, 1);
  line.push_back(asking(weird_, "/4"));
  wait_for_line(weird_, 2);
  go_on_.open();
  for (RawClient& client : line) EXPECT_EQ(client.read_answer().status, 200);
}

TEST_F(FullRoom, AReloadMakesItLarger) {
  auto line = lined_up(weird_, {"/1", "/2"});
  weird_.write_config(config("", "max_waiting: 3"));
  weird_.wait_for_metric("weir_config_reloads_total", {{"result", "ok"}}, 1);
  line.push_back(asking(weird_, "/3"));
  wait_for_line(weird_, 3);
  go_on_.open();
  for (RawClient& client : line) EXPECT_EQ(client.read_answer().status, 200);
}

class LimitReload : public testing::Test {
 protected:
  Config with(const std::string& rule) const {
    return {.servers = {upstream_.url()}, .default_rule = rule};
  }
  void reload(const std::string& rule) {
    weird_.write_config(with(rule));
    weird_.wait_for_metric("weir_config_reloads_total", {{"result", "ok"}}, ++reloads_);
  }

  FakeUpstream upstream_{serve(answer(200, "ok"))};
  WeirdProcess weird_{with("{limit: 2, window: 24h}")};
  int reloads_ = 0;
};

TEST_F(LimitReload, AHigherLimitServesThoseWhoWaitInTheSameWindow) {
  RawClient client(weird_.port());
  client.get("/");
  client.get("/");
  auto line = lined_up(weird_, {"/", "/", "/"});
  reload("{limit: 4, window: 24h}");
  EXPECT_EQ(line[0].read_answer().status, 200);
  EXPECT_EQ(line[1].read_answer().status, 200);
  EXPECT_TRUE(line[2].quiet_for(300ms));
  EXPECT_EQ(upstream_.requests().size(), 4u);
  reload("{unlimited: true}");
  EXPECT_EQ(line[2].read_answer().status, 200);
}

TEST_F(LimitReload, ALowerLimitCountsWhatWasUsedInTheWindow) {
  reload("{limit: 10, window: 24h, wait: 0s}");
  RawClient client(weird_.port());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get("/").status, 200);
  reload("{limit: 3, window: 24h, wait: 0s}");
  EXPECT_EQ(client.get("/").status, 429);
  EXPECT_EQ(upstream_.requests().size(), 3u);
}

TEST_F(LimitReload, AnotherWindowOrModeBeginsItsOwnCount) {
  RawClient client(weird_.port());
  client.get("/");
  client.get("/");
  auto line = lined_up(weird_, {"/"});
  reload("{limit: 1, mode: in_flight}");
  EXPECT_EQ(line[0].read_answer().status, 200);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get("/").status, 200);
}

}  // namespace
}  // namespace weir::test
