// Several servers behind one upstream, and several upstreams behind one Weir.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

TEST(Balancing, ServersTakeTurns) {
  FakeUpstream one(serve(answer(200, "1"))), two(serve(answer(200, "2"))),
      three(serve(answer(200, "3")));
  WeirdProcess weird({.servers = {one.url(), two.url(), three.url()}, .workers = 1});
  RawClient client(weird.port());
  for (int time = 0; time < 30; ++time) EXPECT_EQ(client.get("/").status, 200);
  for (const FakeUpstream* server : {&one, &two, &three}) EXPECT_EQ(server->requests().size(), 10u);
}

TEST(Balancing, RequestsAtTheSameTimeAreSpreadToo) {
  FakeUpstream one(send_and_stall("")), two(send_and_stall(""));
  WeirdProcess weird({.servers = {one.url(), two.url()}, .workers = 1});
  std::vector<RawClient> clients;
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back(weird.port());
    clients.back().send(lines({"GET / HTTP/1.1", "Host: h"}));
  }
  one.wait_for_requests(3);
  two.wait_for_requests(3);
}

TEST(Balancing, AServerThatIsBusyIsLeftAloneWhileAnotherIsFree) {
  FakeUpstream busy(send_and_stall(""));
  FakeUpstream free(serve(answer(200, "free")));
  WeirdProcess weird({.servers = {busy.url(), free.url()}, .workers = 1});
  // Ask until one request hangs at the busy server.
  std::vector<RawClient> hanging;
  while (busy.requests().empty()) {
    hanging.emplace_back(weird.port());
    hanging.back().send(lines({"GET / HTTP/1.1", "Host: h"}));
    while (busy.requests().empty() && hanging.back().quiet_for(10ms)) {
    }
  }
  RawClient client(weird.port());
  for (int time = 0; time < 4; ++time) EXPECT_EQ(client.get("/").body, "free");
}

TEST(Balancing, AServerThatComesBackIsUsedAgain) {
  FakeUpstream steady(serve(answer(200, "steady")));
  FakeUpstream flaky(serve(answer(200, "flaky")), Start::refusing);
  WeirdProcess weird({.servers = {steady.url(), flaky.url()}, .workers = 1});
  RawClient client(weird.port());
  for (int time = 0; time < 6; ++time) EXPECT_EQ(client.get("/").body, "steady");
  flaky.listen();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (flaky.requests().empty()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it was never tried again";
    EXPECT_EQ(client.get("/").status, 200);
    client.quiet_for(20ms);
  }
}

TEST(Balancing, AServerMayBeNamedNotOnlyNumbered) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {"http://localhost:" + std::to_string(upstream.port())}});
  EXPECT_EQ(get(weird.port(), "/").status, 200);
}

TEST(Balancing, ARuleChoosesTheUpstream) {
  FakeUpstream main(serve(answer(200, "main"))), reports(serve(answer(200, "reports")));
  Config config{
      .servers = {main.url()},
      .rest =
          "rules:\n"
          "  - {name: reports, match: {path: /reports/*, methods: [GET]}, unlimited: true, "
          "upstream: reports}"};
  TemporaryDirectory directory;
  const auto file = directory.path() / "weir.yaml";
  write_file(file, config.yaml() + "  reports:\n    servers: [" + reports.url() + "]\n");
  WeirdProcess weird(file, {});
  EXPECT_EQ(get(weird.port(), "/reports/7").body, "reports");
  EXPECT_EQ(get(weird.port(), "/x/..//reports/%37").body, "reports");
  EXPECT_EQ(get(weird.port(), "/reports/7/pages").body, "main");
  EXPECT_EQ(get(weird.port(), "/").body, "main");
}

}  // namespace
}  // namespace weir::test
