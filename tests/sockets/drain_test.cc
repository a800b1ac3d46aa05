// Stopping with requests under way: not ready first, then no new work, then the old is finished or
// cut.

#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>
#include <thread>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

using std::chrono::steady_clock;

void wait_until(const std::function<bool()>& holds, const char* what) {
  const auto deadline = steady_clock::now() + patience;
  while (!holds()) {
    if (steady_clock::now() > deadline) throw TimedOut(what);
    std::this_thread::sleep_for(5ms);
  }
}

// One line of the log is a warning with that number in it.
bool warns_of(const std::string& log, int number) {
  const std::string text = std::to_string(number);
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    line += ' ';
    if (line.find("warn") == std::string::npos) continue;
    for (const std::string& written : {" " + text + " ", "=" + text + " "}) {
      if (line.find(written) != std::string::npos) return true;
    }
  }
  return false;
}

// Weir with one request under way, held at the upstream until `go_on` opens.
class Drain : public testing::Test {
 protected:
  Drain() {
    client_.send(lines({"GET / HTTP/1.1", "Host: h"}));
    upstream_.wait_for_requests(1);
  }

  void expect_exit_code_0() {
    const auto exit = weird_.wait_for_exit();
    ASSERT_TRUE(exit) << weird_.log();
    EXPECT_EQ(exit->code, 0);
  }

  Gate go_on_;
  FakeUpstream upstream_{after_request([this](UpstreamConnection& connection) {
    connection.wait(go_on_);
    connection.send(answer(200, "done"));
  })};
  WeirdProcess weird_{Config{.servers = {upstream_.url()}, .drain_timeout = "60s"}};
  RawClient client_{weird_.port()};
};

TEST_F(Drain, ARequestUnderWayIsFinishedAndItsConnectionClosed) {
  weird_.signal(SIGTERM);
  wait_until([&] { return weird_.admin("/readyz").status == 503; }, "readiness never failed");
  EXPECT_EQ(weird_.admin("/livez").status, 200);
  go_on_.open();
  const Answer answer = client_.read_answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "done");
  EXPECT_EQ(answer.fields.get("Connection"), "close");
  EXPECT_EQ(client_.wait_for_end(), Ending::fin);
  expect_exit_code_0();
}

TEST_F(Drain, NewConnectionsAreRefused) {
  weird_.signal(SIGTERM);
  wait_until([&] { return try_connect(weird_.port()).get() < 0; }, "it still listens");
  EXPECT_EQ(weird_.admin("/readyz").status, 503) << "readiness fails before the listeners close";
  go_on_.open();
  EXPECT_EQ(client_.read_answer().status, 200);
  expect_exit_code_0();
}

TEST_F(Drain, IdleConnectionsAreClosed) {
  RawClient never_used(weird_.port());
  RawClient used_before(weird_.port());
  used_before.send(lines({"GET /bad HTTP/1.1", "Host: h", "Expect: miracles"}));
  const bool kept = used_before.read_answer().fields.get("Connection") != "close";
  weird_.signal(SIGTERM);
  EXPECT_EQ(never_used.read_to_end(), "");
  EXPECT_EQ(used_before.read_to_end(), "");
  EXPECT_EQ(kept ? used_before.ending() : Ending::fin, Ending::fin);
  go_on_.open();
  EXPECT_EQ(client_.read_answer().status, 200);
  expect_exit_code_0();
}

TEST_F(Drain, ASecondSignalChangesNothing) {
  weird_.signal(SIGTERM);
  wait_until([&] { return weird_.admin("/readyz").status == 503; }, "readiness never failed");
  weird_.signal(SIGHUP);
  go_on_.open();
  EXPECT_EQ(client_.read_answer().status, 200);
  expect_exit_code_0();
}

TEST(DrainTimeout, CutsWhatIsLeftAndSaysHowMuch) {
  FakeUpstream upstream(send_and_stall(""));
  WeirdProcess weird({.servers = {upstream.url()}, .drain_timeout = "300ms"});
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(weird.port());
    clients.back().send(lines({"GET / HTTP/1.1", "Host: h"}));
  }
  upstream.wait_for_requests(3);
  weird.signal(SIGTERM);
  const auto exit = weird.wait_for_exit();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
  EXPECT_TRUE(warns_of(weird.log(), 3)) << weird.log();
  for (RawClient& client : clients) {
    const std::string text = client.read_to_end();
    EXPECT_EQ(text.find(" 200 "), std::string::npos) << text;
  }
}

TEST(DrainTimeout, IsNotWaitedForWhenNothingIsUnderWay) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}, .drain_timeout = "60s"});
  RawClient idle(weird.port());
  EXPECT_EQ(idle.get("/").status, 200);
  const auto start = steady_clock::now();
  weird.signal(SIGTERM);
  ASSERT_TRUE(weird.wait_for_exit());
  EXPECT_LT(steady_clock::now() - start, 20s);
  EXPECT_EQ(idle.read_to_end(), "");
}

TEST(DrainTimeout, AnOpenTunnelIsUnderWayToo) {
  FakeUpstream upstream(send_and_stall(
      lines({"HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"})));
  WeirdProcess weird({.servers = {upstream.url()}, .drain_timeout = "300ms"});
  RawClient client(weird.port());
  client.send(lines({"GET / HTTP/1.1", "Host: h", "Connection: Upgrade", "Upgrade: websocket"}));
  EXPECT_EQ(client.read_answer().status, 101);
  weird.signal(SIGTERM);
  const auto exit = weird.wait_for_exit();
  ASSERT_TRUE(exit) << "a tunnel kept it from stopping";
  EXPECT_EQ(exit->code, 0);
  client.wait_for_end();
}

}  // namespace
}  // namespace weir::test
