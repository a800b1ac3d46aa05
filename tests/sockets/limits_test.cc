// What one client may ask of Weir in bytes, fields, time and connections, and what it is told
// beyond that.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <optional>
#include <utility>

#include "tests/support/answers.h"
#include "tests/support/eventually.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

using std::chrono::steady_clock;

class Limits : public testing::Test {
 protected:
  explicit Limits(const std::string& rest = "")
      : weird_(Config{.servers = {upstream_.url()}, .rest = rest}) {}

  void expect_refused(std::string_view request, int status) {
    RawClient client(weird_.port());
    client.send(request);
    expect_problem(client.read_answer(), status);
    EXPECT_EQ(client.read_to_end(), "");
    EXPECT_EQ(upstream_.connections(), 0);
  }
  void expect_served(std::string_view request) {
    RawClient client(weird_.port());
    client.send(request);
    EXPECT_EQ(client.read_answer().status, 200);
  }

  FakeUpstream upstream_{serve(answer(200, "ok"))};
  WeirdProcess weird_;
};

std::string with_fields(int count) {
  std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 1; i < count; ++i) head += "X-" + std::to_string(i) + ": y\r\n";
  return head + "\r\n";
}

std::string with_header_bytes(std::size_t count) {
  return lines({"GET / HTTP/1.1", "Host: h", "X: " + std::string(count, 'x')});
}

std::string with_target_bytes(std::size_t count) {
  return lines({"GET /" + std::string(count - 1, 'x') + " HTTP/1.1", "Host: h"});
}

TEST_F(Limits, TooManyHeaderBytesAre431) {
  expect_refused(with_header_bytes(32768), 431);
  expect_served(with_header_bytes(30000));
}

TEST_F(Limits, AHeaderWithoutEndIs431) {
  // Many times the limit: it must be refused for its size, long before its end.
  RawClient client(weird_.port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\nX: ");
  const std::string piece(65536, 'x');
  for (int i = 0; i < 64 && client.send_until_stuck(piece, 500ms) == piece.size(); ++i) {
  }
  expect_problem(client.read_answer(), 431);
  client.wait_for_end();
}

TEST_F(Limits, TooManyHeaderFieldsAre431) {
  expect_refused(with_fields(101), 431);
  expect_served(with_fields(100));
}

TEST_F(Limits, TooLongATargetIs414) {
  expect_refused(with_target_bytes(8193), 414);
  expect_served(with_target_bytes(8192));
}

TEST_F(Limits, ARefusalHasItsBodyThoughTheRequestBeforeWasHead) {
  for (const std::string& request :
       {with_target_bytes(20000), with_header_bytes(40000), std::string("GET / HTTP/1.1\n")}) {
    RawClient client(weird_.port());
    client.send(lines({"HEAD / HTTP/1.1", "Host: h"}));
    EXPECT_EQ(client.read_answer("HEAD").status, 200);
    client.send(request);
    const Answer refused = client.read_answer();
    expect_problem(refused, refused.status);
  }
}

class SmallLimits : public Limits {
 protected:
  SmallLimits() : Limits("limits: {header_bytes: 1024, header_fields: 5, target_bytes: 100}") {}
};

TEST_F(SmallLimits, AreTakenFromTheConfiguration) {
  expect_refused(with_header_bytes(1024), 431);
  expect_refused(with_fields(6), 431);
  expect_refused(with_target_bytes(101), 414);
  expect_served(with_header_bytes(800));
  expect_served(with_fields(5));
  expect_served(with_target_bytes(100));
}

class Timeouts : public Limits {
 protected:
  Timeouts() : Limits("timeouts: {header: 400ms, body_idle: 400ms, idle: 400ms}") {}
};

TEST_F(Timeouts, AHeaderThatDoesNotComeToItsEndIs408) {
  const auto start = steady_clock::now();
  expect_refused("GET / HTTP/1.1\r\nHost: h\r\n", 408);
  EXPECT_GE(steady_clock::now() - start, 400ms);
}

TEST_F(Timeouts, AHeaderThatTricklesInIs408AllTheSame) {
  RawClient client(weird_.port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\nX: ");
  // No byte may buy it more time, however soon it comes after the last.
  const auto start = steady_clock::now();
  const auto too_long = start + (sanitized ? 10s : 3s);
  while (client.quiet_for(10ms) && steady_clock::now() < too_long) client.send("x");
  EXPECT_LT(steady_clock::now(), too_long);
  expect_problem(client.read_answer(), 408);
}

TEST_F(Timeouts, TheSecondHeaderOnAConnectionHasItsOwnTime) {
  RawClient client(weird_.port());
  EXPECT_EQ(client.get("/").status, 200);
  client.send("GET / HTTP/1.1\r\nHos");
  expect_problem(client.read_answer(), 408);
}

TEST_F(Timeouts, ABodyThatPausesTooLongIs408) {
  for (const std::string& half :
       {lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 10"}) + "half",
        lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) + chunk("half")}) {
    RawClient client(weird_.port());
    client.send(half);
    expect_problem(client.read_answer(), 408);
    client.wait_for_end();
  }
  for (int connection = 1; connection <= upstream_.connections(); ++connection) {
    upstream_.wait_for_closing(connection);
  }
  for (const Received& request : upstream_.requests()) EXPECT_FALSE(request.body_complete);
}

TEST_F(Timeouts, ABodyMayTakeLongIfItKeepsComing) {
  RawClient client(weird_.port());
  client.send(lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 8"}));
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(client.quiet_for(100ms));
    client.send("x");
  }
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST_F(Timeouts, AnIdleConnectionIsClosedWithoutAWord) {
  RawClient client(weird_.port());
  EXPECT_EQ(client.get("/").status, 200);
  const auto start = steady_clock::now();
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_EQ(client.ending(), Ending::fin);
  EXPECT_GE(steady_clock::now() - start, 300ms);
}

TEST_F(Timeouts, AConnectionThatNeverSendsAnythingIsClosed) {
  RawClient client(weird_.port());
  client.wait_for_end();
}

TEST(NoTimeouts, AThinkingUpstreamIsNotAnIdleClient) {
  Gate asked, go_on;
  FakeUpstream upstream(after_request([&](UpstreamConnection& connection) {
    asked.open();
    connection.wait(go_on);
    connection.send(answer(200, "thought about it"));
  }));
  WeirdProcess weird({.servers = {upstream.url()},
                      .rest = "timeouts: {header: 200ms, body_idle: 200ms, idle: 200ms}"});
  RawClient client(weird.port());
  client.send(lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 2"}) + "hi");
  asked.wait();
  EXPECT_TRUE(client.quiet_for(800ms));
  go_on.open();
  EXPECT_EQ(client.read_answer().body, "thought about it");
}

TEST(ConnectionLimit, BeyondItClientsGet503UntilOneLeaves) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}, .rest = "limits: {connections: 3}"});
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(weird.port());
    EXPECT_EQ(clients.back().get("/").status, 200);
  }
  RawClient one_too_many(weird.port());
  one_too_many.send(lines({"GET / HTTP/1.1", "Host: h"}));
  expect_problem(one_too_many.read_answer(), 503);
  one_too_many.wait_for_end();
  EXPECT_EQ(clients[0].get("/").status, 200) << "those who are in stay in";

  clients.pop_back();
  const auto deadline = steady_clock::now() + patience;
  int status = 503;
  while (status == 503 && steady_clock::now() < deadline) status = get(weird.port(), "/").status;
  EXPECT_EQ(status, 200);
}

// Weir with one loop and 64 files, and a crowd that takes all that are left.
class OpenFiles : public testing::Test {
 protected:
  explicit OpenFiles(const std::string& upstream = "throttle: {kind: aimd}")
      : weird_({.servers = {upstream_.url()},
                .upstream = upstream,
                .workers = 1,
                .default_rule = "{limit: 100, window: 1h}"},
               {.arguments = {}, .open_files = 64}) {}
  void crowd_in() {
    for (int i = 0; i < 100; ++i) crowd_.emplace_back(weird_.port());
    // A few more than 64, where it was born with some beyond.
    int last = 0;
    eventually("all files are taken", [&] {
      const int now = weird_.open_files();
      return std::exchange(last, now) == now && now >= 64;
    });
  }

  Gate go_on_;
  // /busy and /held are answered when the gate opens.
  FakeUpstream upstream_{[this](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target != "/") connection.wait(go_on_);
      connection.send(request->target == "/busy" ? answer(503, "busy") : answer(200, "ok"));
    }
  }};
  WeirdProcess weird_;
  std::vector<RawClient> crowd_;
};

TEST_F(OpenFiles, TooFewForTheConnectionsThatAreAllowedAreWarnedOf) {
  EXPECT_TRUE(weird_.wait_for_log("limits.connections is more than the open files allow"));
}

TEST_F(OpenFiles, WhoCameWhenThereWereNoneIsServedOnceThereAre) {
  crowd_in();
  // The kernel completes the handshake of those that cannot be accepted.
  RawClient latecomer(weird_.port());
  latecomer.send(lines({"GET / HTTP/1.1", "Host: h"}));
  EXPECT_TRUE(latecomer.quiet_for(300ms));
  EXPECT_FALSE(weird_.wait_for_exit(0ms)) << weird_.log();
  crowd_.clear();  // and nobody else comes
  EXPECT_EQ(latecomer.read_answer().status, 200);
}

TEST_F(OpenFiles, NoneLeftForAnUpstreamIsOurOwnTroubleAndNotTheUpstreams) {
  if (sanitized) GTEST_SKIP() << "to look at memory, the sanitizer opens a file itself";
  RawClient client(weird_.port());
  crowd_in();
  const Answer refused = client.get("/");
  expect_problem(refused, 503, "queue_full");
  EXPECT_EQ(refused.fields.get("Retry-After"), "1");
  EXPECT_TRUE(refused.fields.has("RateLimit"));
  EXPECT_EQ(upstream_.connections(), 0);
  crowd_.clear();
  eventually("files are free", [&] { return weird_.open_files() < 60; });
  EXPECT_EQ(weird_.metric("weir_throttle_rate"), 100) << "nothing was learned";
  EXPECT_EQ(weird_.metric("weir_requests_total", {{"outcome", "queue_full"}}), 1);
  const Answer served = client.get("/");
  EXPECT_EQ(served.status, 200);
  EXPECT_NE(served.fields.get("RateLimit").find("r=99"), std::string::npos) << "nothing was spent";
}

// All files are taken while the first attempt is at the upstream; the second one finds none.
class OpenFilesForARetry : public OpenFiles {
 protected:
  OpenFilesForARetry()
      : OpenFiles(
            "service_config: {methodConfig: [{name: [{}], retryPolicy: {maxAttempts: 2, "
            "initialBackoff: 0.01s, maxBackoff: 0.01s, backoffMultiplier: 1, "
            "retryableStatusCodes: [503]}}]}") {}
};
TEST_F(OpenFilesForARetry, ThatFindsNoneTheFailureStands) {
  if (sanitized) GTEST_SKIP() << "to look at memory, the sanitizer opens a file itself";
  RawClient client(weird_.port());
  client.send(lines({"GET /busy HTTP/1.1", "Host: h"}));
  upstream_.wait_for_requests(1);
  crowd_in();
  go_on_.open();
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "busy");
  crowd_.clear();
  eventually("files are free", [&] { return weird_.open_files() < 60; });
  EXPECT_EQ(weird_.metric("weir_attempts_total", {{"kind", "retry"}}), 1);
  EXPECT_EQ(upstream_.requests().size(), 1u);
}

class OpenFilesForAHedge : public OpenFiles {
 protected:
  OpenFilesForAHedge()
      : OpenFiles(
            "service_config: {methodConfig: [{name: [{}], hedgingPolicy: {maxAttempts: 2, "
            "hedgingDelay: 2s}}]}") {}
};
TEST_F(OpenFilesForAHedge, ThatFindsNoneTheFirstAttemptGoesOn) {
  if (sanitized) GTEST_SKIP() << "to look at memory, the sanitizer opens a file itself";
  RawClient client(weird_.port());
  client.send(lines({"GET /held HTTP/1.1", "Host: h"}));
  upstream_.wait_for_requests(1);
  crowd_in();
  EXPECT_TRUE(client.quiet_for(2500ms));
  go_on_.open();
  EXPECT_EQ(client.read_answer().status, 200);
  crowd_.clear();
  eventually("files are free", [&] { return weird_.open_files() < 60; });
  EXPECT_EQ(weird_.metric("weir_attempts_total", {{"kind", "hedge"}}), 1);
  EXPECT_EQ(upstream_.requests().size(), 1u);
}

TEST(OpenFilesAtStart, AreRaisedAsFarAsTheSystemAllows) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  rlimit ours{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &ours), 0);
  ASSERT_GT(ours.rlim_max, 256u);
  // What it is born with is ours.
  const rlimit few{64, ours.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::optional<WeirdProcess> weird;
  weird.emplace(Config{.servers = {upstream.url()}, .workers = 1});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &ours), 0);
  std::vector<RawClient> crowd;
  for (int i = 0; i < 100; ++i) crowd.emplace_back(weird->port());
  EXPECT_EQ(get(weird->port(), "/").status, 200);
}

}  // namespace
}  // namespace weir::test
