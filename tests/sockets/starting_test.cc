// Starting, and refusing to: flags, environment, file, exit codes.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

std::vector<std::string> flags_for(const std::string& listen, const std::string& admin) {
  return {"--listen",           listen,      "--admin", admin, "--upstream",
          "http://127.0.0.1:1", "--workers", "2"};
}

std::string loopback(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

TEST(Starting, FlagsAloneAreEnough) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird("", {.arguments = {"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
                                        "--upstream", upstream.url()}});
  EXPECT_EQ(get(weird.port(), "/").body, "ok");
}

TEST(Starting, TheEnvironmentAloneIsEnoughAndListsAreByComma) {
  FakeUpstream one(serve(answer(200, "1"))), two(serve(answer(200, "2")));
  WeirdProcess weird("", {.arguments = {},
                          .environment = {{"WEIR_LISTEN", "127.0.0.1:0"},
                                          {"WEIR_ADMIN", "127.0.0.1:0"},
                                          {"WEIR_WORKERS", "1"},
                                          {"WEIR_UPSTREAM", one.url() + "," + two.url()}}});
  RawClient client(weird.port());
  for (int time = 0; time < 4; ++time) EXPECT_EQ(client.get("/").status, 200);
  EXPECT_EQ(one.requests().size(), 2u);
  EXPECT_EQ(two.requests().size(), 2u);
}

TEST(Starting, FlagsOverrideTheEnvironmentWhichOverridesTheFile) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  const Config config{.servers = {upstream.url()}, .workers = 1};
  const auto workers = [](const WeirdProcess& weird) {
    return nlohmann::json::parse(weird.admin("/v1/config").body).value("workers", 0);
  };
  WeirdProcess file_only(config);
  EXPECT_EQ(workers(file_only), 1);
  WeirdProcess with_environment(config, {.arguments = {}, .environment = {{"WEIR_WORKERS", "2"}}});
  EXPECT_EQ(workers(with_environment), 2);
  WeirdProcess with_flag(config,
                         {.arguments = {"--workers", "3"}, .environment = {{"WEIR_WORKERS", "2"}}});
  EXPECT_EQ(workers(with_flag), 3);
}

TEST(Starting, WhoHasNoNameIsCalledByItsHostAndProcess) {
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  const Config config{.servers = {"http://127.0.0.1:1"}};
  for (const Launch& launch : {Launch{.arguments = {}}, Launch{.arguments = {"--replica", ""}}}) {
    WeirdProcess weird(config, launch);
    const auto status = nlohmann::json::parse(weird.admin("/v1/status").body);
    const std::string name = status.value("replica", "");
    ASSERT_TRUE(name.starts_with(host + std::string("-"))) << name;
    const std::string process = name.substr(std::string(host).size() + 1);
    std::ifstream command("/proc/" + process + "/cmdline");
    const std::string line{std::istreambuf_iterator<char>(command), {}};
    EXPECT_NE(line.find(weird.config_file().string()), std::string::npos) << name;
  }
}

TEST(Starting, VersionAndHelpArePrintedAndThatIsAll) {
  const Finished version = run_weird({.arguments = {"--version"}});
  EXPECT_EQ(version.code, 0);
  EXPECT_NE(version.output.find_first_of("0123456789"), std::string::npos) << version.output;
  const Finished help = run_weird({.arguments = {"--help"}});
  EXPECT_EQ(help.code, 0);
  for (const char* flag : {"--config", "--listen", "--admin", "--upstream", "--limit", "--check"}) {
    EXPECT_NE(help.output.find(flag), std::string::npos) << flag;
  }
}

TEST(Starting, ABadFlagIsExitCode1) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--no-such-flag"}, std::vector<std::string>{"--listen", "nowhere"},
        std::vector<std::string>{"--upstream", "http://127.0.0.1:1", "--limit", "lots"},
        std::vector<std::string>{"--upstream", "http://127.0.0.1:1", "--config", ""},
        std::vector<std::string>{}}) {
    const Finished weird = run_weird({.arguments = arguments});
    EXPECT_EQ(weird.code, 1);
    EXPECT_NE(weird.error, "");
  }
}

TEST(Starting, AFlagWithoutItsValueHidesNoOtherErrorAndAddsNone) {
  TemporaryDirectory directory;
  const std::string file = (directory.path() / "weir.yaml").string();
  write_file(file, "no_such_field: 1\nupstreams: {main: {servers: [http://127.0.0.1:1]}}\n");
  const Finished weird =
      run_weird({.arguments = {"--config", file, "--workers", "many", "--listen"}});
  EXPECT_EQ(weird.code, 1);
  for (const std::string error : {"--listen", ":1: no_such_field: ", "--workers: "}) {
    EXPECT_NE(weird.error.find(error), std::string::npos) << weird.error;
  }
  EXPECT_EQ(std::ranges::count(weird.error, '\n'), 3) << weird.error;
}

TEST(Starting, ABadConfigurationIsExitCode1WithEveryErrorOnStderr) {
  TemporaryDirectory directory;
  const std::string file = (directory.path() / "weir.yaml").string();
  write_file(file,
             "listen: 127.0.0.1:0\n"
             "no_such_field: 1\n"
             "limits: {header_bytes: many}\n"
             "rules:\n"
             "  - name: a\n"
             "    limit: 0\n"
             "upstreams: {main: {servers: [http://127.0.0.1:1]}}\n");
  for (const bool only_check : {false, true}) {
    std::vector<std::string> arguments{"--config", file};
    if (only_check) arguments.push_back("--check");
    const Finished weird = run_weird({.arguments = arguments});
    EXPECT_EQ(weird.code, 1);
    const std::string printed = weird.error + (only_check ? weird.output : "");
    for (const std::string error :
         {":2: no_such_field: ", ":3: limits.header_bytes: ", ":6: rules[0].limit: "}) {
      EXPECT_NE(printed.find(file + error), std::string::npos) << error << " is missing in:\n"
                                                               << printed;
    }
  }
}

TEST(Starting, AFileThatIsNotThereIsExitCode1) {
  const Finished weird = run_weird({.arguments = {"--config", "/no/such/file.yaml"}});
  EXPECT_EQ(weird.code, 1);
  EXPECT_NE(weird.error.find("/no/such/file.yaml"), std::string::npos) << weird.error;
}

TEST(Starting, CheckOfAGoodFileIsExitCode0AndStartsNothing) {
  TemporaryDirectory directory;
  const auto file = directory.path() / "weir.yaml";
  write_file(file, Config{.servers = {"http://127.0.0.1:1"}}.yaml());
  const Finished weird = run_weird({.arguments = {"--config", file.string(), "--check"}});
  EXPECT_EQ(weird.code, 0) << weird.error;
  EXPECT_EQ(weird.error.find("listening on"), std::string::npos);
}

TEST(Starting, APortInUseIsExitCode2) {
  const Descriptor plain = bind_loopback();
  ASSERT_EQ(::listen(plain.get(), 1), 0);
  const std::string taken = loopback(port_of(plain));
  for (const auto& arguments : {flags_for(taken, "127.0.0.1:0"), flags_for("127.0.0.1:0", taken)}) {
    const Finished weird = run_weird({.arguments = arguments});
    EXPECT_EQ(weird.code, 2);
    EXPECT_NE(weird.error.find(taken), std::string::npos) << weird.error;
  }
}

TEST(Starting, APortInUseByAnotherWeirdIsExitCode2) {
  // Its listeners share their port among themselves; they must not share it with a stranger's.
  WeirdProcess first(Config{.servers = {"http://127.0.0.1:1"}});
  for (const auto& arguments : {flags_for(loopback(first.port()), "127.0.0.1:0"),
                                flags_for("127.0.0.1:0", loopback(first.admin_port()))}) {
    EXPECT_EQ(run_weird({.arguments = arguments}).code, 2);
  }
  EXPECT_EQ(first.admin("/livez").status, 200);
}

TEST(Starting, AnAddressThatIsNotOursIsExitCode2) {
  EXPECT_EQ(run_weird({.arguments = flags_for("192.0.2.1:80", "127.0.0.1:0")}).code, 2);
}

TEST(Stopping, SigtermAndSigintAreExitCode0) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  for (const int number : {SIGTERM, SIGINT}) {
    WeirdProcess weird({.servers = {upstream.url()}});
    EXPECT_EQ(get(weird.port(), "/").status, 200);
    weird.signal(number);
    const auto exit = weird.wait_for_exit();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 0);
  }
}

TEST(Stopping, ThePortsAreFreeAfterwards) {
  std::uint16_t port, admin_port;
  {
    WeirdProcess first(Config{.servers = {"http://127.0.0.1:1"}});
    port = first.port();
    admin_port = first.admin_port();
    get(port, "/");
  }
  WeirdProcess second("", {.arguments = flags_for(loopback(port), loopback(admin_port))});
  EXPECT_EQ(second.port(), port);
  EXPECT_EQ(second.admin_port(), admin_port);
}

}  // namespace
}  // namespace weir::test
