// weirctl, the program, against a real weird: tables for people, pages for programs, exit codes.

#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/support/answers.h"
#include "tests/support/child_process.h"
#include "tests/support/terminal_process.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

using nlohmann::json;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

Ran run_ctl(std::vector<std::string> arguments) {
  return run_program(WEIRCTL_BINARY, {.arguments = std::move(arguments)});
}

class Weirctl : public testing::Test {
 protected:
  Ran ctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--admin", admin_});
    return run_ctl(std::move(arguments));
  }
  Ran good(std::vector<std::string> arguments) const {
    Ran ran = ctl(std::move(arguments));
    EXPECT_EQ(ran.code, 0) << ran.error;
    EXPECT_EQ(ran.error, "");
    return ran;
  }

  FakeUpstream upstream_{serve(answer(200, "ok"))};
  WeirdProcess weird_{Config{.servers = {upstream_.url()},
                             .rest = "replica: r1\n"
                                     "rules:\n"
                                     "  - {name: reports, match: {path: /reports/*}, limit: 2, "
                                     "window: 24h, wait: 0s}"}};
  const std::string admin_ = "127.0.0.1:" + std::to_string(weird_.admin_port());
};

TEST_F(Weirctl, JsonIsThePageAsTheDaemonGivesIt) {
  get(weird_.port(), "/reports/1");
  const std::vector<std::pair<std::vector<std::string>, std::string>> pages{
      {{"ready"}, "/readyz"},
      {{"replicas"}, "/v1/replicas"},
      {{"upstreams"}, "/v1/upstreams"},
      {{"config"}, "/v1/config"},
      {{"resources"}, "/v1/resources?top=20"},
      {{"resources", "--top", "1"}, "/v1/resources?top=1"},
      {{"resources", "/reports/1"}, "/v1/resources?name=/reports/1"}};
  for (auto [command, page] : pages) {
    command.push_back("--json");
    const Ran ran = good(command);
    EXPECT_EQ(ran.output, weird_.admin(page).body) << page;
    EXPECT_TRUE(json::accept(ran.output)) << page;
  }
  EXPECT_EQ(json::parse(good({"--json", "status"}).output).at("replica"), "r1");
  EXPECT_TRUE(has(good({"metrics"}).output, "weir_build_info{"));
}

TEST_F(Weirctl, PeopleGetTables) {
  get(weird_.port(), "/reports/1");
  EXPECT_TRUE(has(good({"status"}).output, "replica     r1\n"));
  EXPECT_EQ(good({"ready"}).output, "ready\n");
  EXPECT_TRUE(has(good({"replicas"}).output, "\nr1 "));
  EXPECT_TRUE(has(good({"upstreams"}).output, "\nmain "));
  const std::string resources = good({"resources"}).output;
  EXPECT_TRUE(resources.starts_with("RESOURCE ")) << resources;
  EXPECT_TRUE(has(resources, "\n/reports/1  reports ")) << resources;
  const std::string one = good({"resources", "/reports/1"}).output;
  EXPECT_TRUE(has(one, "used        1 of 2\n")) << one;
  EXPECT_TRUE(has(one, "claims      r1 has ")) << one;
}

TEST_F(Weirctl, ExplainPassesOnAllThatARequestIsMadeOf) {
  get(weird_.port(), "/reports/1");
  get(weird_.port(), "/reports/1");
  const std::string text = good({"explain", "/reports/1?a=1&b=%20"}).output;
  EXPECT_TRUE(text.starts_with("GET /reports/1?a=1&b=%20 is turned away: limit (429)\n")) << text;
  EXPECT_TRUE(has(text, "sent as     /reports/1?a=1&b=%20\n")) << text;
  EXPECT_TRUE(has(text, "usage       2 of 2 used, 0 left")) << text;
  const json page =
      json::parse(good({"explain", "/x", "--method", "POST", "--host", "h.example", "--client",
                        "192.0.2.1", "--header", "X-A: 1", "--header", "X-Project: p", "--json"})
                      .output);
  EXPECT_EQ(page.at("request").at("method"), "POST");
  EXPECT_EQ(page.at("request").at("host"), "h.example");
  EXPECT_EQ(page.at("client"), "192.0.2.1");
  EXPECT_EQ(page.at("rule").at("name"), "default");
}

TEST_F(Weirctl, SaysWhyThereIsNoAnswer) {
  EXPECT_EQ(ctl({"resources", "/none"}).code, 1);
  EXPECT_TRUE(has(ctl({"resources", "/none"}).error, "knows no resource /none"));
  EXPECT_EQ(ctl({"--json", "resources", "/none"}).code, 1);
  EXPECT_EQ(ctl({"explain", "/", "--client", "me"}).code, 1);
  EXPECT_EQ(ctl({"explain", "/", "--client", "me"}).error,
            "weirctl: the daemon answers 400: client is not an address\n");
  const Descriptor nobody = bind_loopback();
  const std::string away = "127.0.0.1:" + std::to_string(port_of(nobody));
  for (const char* command : {"status", "ready", "resources", "top"}) {
    const Ran ran = run_ctl({"--admin", away, command});
    EXPECT_EQ(ran.code, 2) << command;
    EXPECT_TRUE(has(ran.error, "no answer from " + away)) << ran.error;
  }
  FakeUpstream other([](UpstreamConnection& connection) {
    connection.send("SSH-2.0-x\r\n");
    connection.close();
  });
  const Ran ran = run_ctl({"--admin", "127.0.0.1:" + std::to_string(other.port()), "status"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(has(ran.error, "does not speak HTTP") || has(ran.error, "reset")) << ran.error;
}

TEST_F(Weirctl, AWrongCommandLineSaysWhatIsWrongAndExitsWith1) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                {"nonsense"},
                                                {"explain"},
                                                {"check"},
                                                {"resources", "--top", "0"},
                                                {"status", "extra"},
                                                {"top", "--interval", "-1"}}) {
    const Ran ran = run_ctl(wrong);
    EXPECT_EQ(ran.code, 1);
    EXPECT_TRUE(ran.error.starts_with("weirctl: ")) << ran.error;
    EXPECT_TRUE(has(ran.error, "--help")) << ran.error;
  }
  EXPECT_TRUE(has(run_ctl({"nonsense"}).error, "nonsense"));
  EXPECT_EQ(run_ctl({"--help"}).code, 0);
  EXPECT_TRUE(has(run_ctl({"--version"}).output, "weirctl "));
}

TEST_F(Weirctl, CheckListsEveryErrorOfAFile) {
  const Ran fine = run_ctl({"check", weird_.config_file().string()});
  EXPECT_EQ(fine.code, 0) << fine.error;
  const TemporaryDirectory folder;
  write_file(folder.path() / "bad.yaml", "listen: nowhere\nworkers: many\n");
  const std::string file = (folder.path() / "bad.yaml").string();
  const Ran bad = run_ctl({"check", file});
  EXPECT_EQ(bad.code, 1);
  EXPECT_TRUE(has(bad.error, ":1: listen: ")) << bad.error;
  EXPECT_TRUE(has(bad.error, ":2: workers: ")) << bad.error;
  const Ran told = run_ctl({"check", file, "--json"});
  EXPECT_EQ(told.code, 1);
  EXPECT_EQ(json::parse(told.output).at("good"), false);
  EXPECT_GE(json::parse(told.output).at("errors").size(), 2u);
}

TEST_F(Weirctl, ReadyExitsWith1WhereTheDaemonIsNot) {
  FakeUpstream slow(
      after_request([](UpstreamConnection& connection) { connection.wait_for_peer_to_leave(); }));
  weird_.write_config({.servers = {slow.url()}, .rest = "replica: r1", .drain_timeout = "30s"});
  weird_.wait_for_metric("weir_config_reloads_total", {{"result", "ok"}}, 1);
  const RawClient under_way = asking(weird_, "/slow");
  slow.wait_for_requests(1);
  weird_.signal(SIGTERM);
  ASSERT_TRUE(weird_.wait_for_log("draining"));
  const Ran ran = ctl({"ready"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.output, "not ready: draining\n");
  weird_.signal(SIGTERM);  // at once
}

TEST_F(Weirctl, TopWithoutATerminalPrintsOnce) {
  get(weird_.port(), "/reports/1");
  const std::string text = good({"top"}).output;
  EXPECT_TRUE(text.starts_with("weir ")) << text;
  EXPECT_TRUE(has(text, "1 of 2")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  const json snapshot = json::parse(good({"top", "--json"}).output);
  EXPECT_EQ(snapshot.at("resources").at(0).at("name"), "/reports/1");
  EXPECT_EQ(snapshot.at("requests").at("ok"), 1);
}

bool same_settings(const termios& a, const termios& b) {
  return a.c_lflag == b.c_lflag && a.c_iflag == b.c_iflag && a.c_oflag == b.c_oflag &&
         std::equal(std::begin(a.c_cc), std::end(a.c_cc), std::begin(b.c_cc));
}

constexpr std::string_view kOwnScreen = "\x1b[?1049h", kOldScreen = "\x1b[?1049l",
                           kCursor = "\x1b[?25h";

class WeirctlTop : public Weirctl {
 protected:
  std::vector<std::string> arguments() const {
    return {"--admin", admin_, "top", "--interval", "0.1"};
  }
};

TEST_F(WeirctlTop, FollowsWhatHappensAndTheSizeOfTheWindow) {
  TerminalProcess top(WEIRCTL_BINARY, arguments(), {100, 30});
  ASSERT_TRUE(top.wait_for(kOwnScreen)) << top.drawn();
  ASSERT_TRUE(top.wait_for("requests/s  0.0"));
  get(weird_.port(), "/reports/1");
  ASSERT_TRUE(top.wait_for("1 of 2")) << top.drawn();
  top.resize({20, 10});
  ASSERT_TRUE(top.wait_for("\r\nRESOURCE      USE ")) << top.drawn();
  EXPECT_FALSE(top.wait_for_exit(0ms));
}

TEST_F(WeirctlTop, LeavesTheTerminalAsItWasWhateverEndsIt) {
  const std::vector<std::pair<std::string, int>> ways{
      {"q", 0}, {"\x03", 0}, {"\x04", 0}, {"", SIGTERM}, {"", SIGHUP}};
  for (const auto& [keys, number] : ways) {
    TerminalProcess top(WEIRCTL_BINARY, arguments(), {100, 30});
    ASSERT_TRUE(top.wait_for("requests/s  0.0")) << top.drawn();
    termios before = top.settings();
    EXPECT_EQ(before.c_lflag & (ICANON | ECHO), 0u);
    keys.empty() ? top.signal(number) : top.type(keys);
    const auto exit = top.wait_for_exit();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 0);
    EXPECT_TRUE(has(top.drawn(), kCursor) && top.drawn().ends_with(kOldScreen)) << top.drawn();
    const TerminalProcess fresh("/bin/true", {}, {100, 30});
    EXPECT_TRUE(same_settings(top.settings(), fresh.settings()));
  }
}

TEST_F(WeirctlTop, WaitsForADaemonThatGoesAway) {
  TerminalProcess top(WEIRCTL_BINARY, arguments(), {100, 30});
  ASSERT_TRUE(top.wait_for("requests/s  0.0")) << top.drawn();
  weird_.kill();
  ASSERT_TRUE(top.wait_for("no answer from ")) << top.drawn();
  top.type("q");
  EXPECT_EQ(top.wait_for_exit().value().code, 0);
}

}  // namespace
}  // namespace weir::test
