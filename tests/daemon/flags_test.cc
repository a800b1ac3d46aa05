// Flags over environment over file.

#include "daemon/flags.h"

#include <gtest/gtest.h>

#include <map>

namespace weir {
namespace {

using namespace std::chrono_literals;
using Errors = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

constexpr const char* kUpstream = "upstreams: {main: {servers: [http://file:1, http://file:2]}}\n";

Flags parse(std::vector<std::string> arguments, const Variables& variables = {}) {
  return parse_flags(std::move(arguments), [&](const std::string& name) {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Loaded load(const std::string& text, std::vector<std::string> arguments,
            const Variables& variables = {}) {
  Flags flags = parse(std::move(arguments), variables);
  EXPECT_EQ(flags.errors, Errors{});
  return parse_config(text, text.empty() ? "" : "weir.yaml", flags.sources.overrides);
}

Config good(const std::string& text, std::vector<std::string> arguments,
            const Variables& variables = {}) {
  Loaded loaded = load(text, std::move(arguments), variables);
  EXPECT_EQ(loaded.errors, Errors{});
  return loaded.config.value_or(Config{});
}

TEST(Flags, AloneAreEnough) {
  Config config = good("", {"--upstream", "http://127.0.0.1:9000"});
  ASSERT_EQ(config.upstreams.size(), 1U);
  EXPECT_EQ(config.upstreams[0].name, "main");
  EXPECT_EQ(config.upstreams[0].servers, (std::vector<ServerAddress>{{"127.0.0.1", 9000}}));
  EXPECT_EQ(config.default_rule.limit.units, 100);
}

TEST(Flags, SetWhatTheyName) {
  Config config = good(
      kUpstream, {"--listen", "127.0.0.1:1", "--admin=127.0.0.1:2", "--limit", "20/1s", "--replica",
                  "r1", "--workers", "3", "--log-level", "debug", "--log-format", "json"});
  EXPECT_EQ(config.listen, (ServerAddress{"127.0.0.1", 1}));
  EXPECT_EQ(config.admin, (ServerAddress{"127.0.0.1", 2}));
  EXPECT_EQ(config.default_rule.limit.units, 20);
  EXPECT_EQ(config.default_rule.limit.window, 1s);
  EXPECT_EQ(config.replica, "r1");
  EXPECT_EQ(config.workers, 3);
  EXPECT_EQ(config.log.level, LogOptions::Level::debug);
  EXPECT_EQ(config.log.format, LogOptions::Format::json);
}

TEST(Flags, OverrideTheEnvironmentWhichOverridesTheFile) {
  std::string file = std::string("workers: 1\nreplica: file\nlisten: 127.0.0.1:1\n") + kUpstream;
  Variables variables{{"WEIR_WORKERS", "2"}, {"WEIR_REPLICA", "environment"}};
  Config config = good(file, {"--workers", "3"}, variables);
  EXPECT_EQ(config.workers, 3);
  EXPECT_EQ(config.replica, "environment");
  EXPECT_EQ(config.listen.port, 1);
}

TEST(Flags, LeaveTheRestOfASectionToTheFile) {
  Config config = good(std::string("log: {access: true}\ndefault: {wait: 5s}\n") + kUpstream,
                       {"--log-level", "warn", "--limit", "5/30s"});
  EXPECT_TRUE(config.log.access);
  EXPECT_EQ(config.log.level, LogOptions::Level::warn);
  EXPECT_EQ(config.default_rule.limit.wait, 5s);
  EXPECT_EQ(config.default_rule.limit.units, 5);
}

TEST(Flags, GiveTheUpstreamMainItsServers) {
  Config config = good(
      "upstreams:\n  main: {servers: [http://file], connect_timeout: 2s}\n  b: {servers: "
      "[http://b]}\n",
      {"--upstream", "http://a", "--upstream", "http://b:81"});
  ASSERT_EQ(config.upstreams.size(), 2U);
  EXPECT_EQ(config.upstreams[0].servers, (std::vector<ServerAddress>{{"a", 80}, {"b", 81}}));
  EXPECT_EQ(config.upstreams[0].connect_timeout, 2s);
}

TEST(Environment, SeparatesListsByComma) {
  Config config = good("", {}, {{"WEIR_UPSTREAM", "http://a,http://b"}, {"WEIR_LOG_LEVEL", "off"}});
  EXPECT_EQ(config.upstreams[0].servers, (std::vector<ServerAddress>{{"a", 80}, {"b", 80}}));
  EXPECT_EQ(config.log.level, LogOptions::Level::off);
}

TEST(Environment, CountsAnEmptyVariableAsUnset) {
  EXPECT_EQ(good(kUpstream, {}, {{"WEIR_WORKERS", ""}, {"WEIR_UPSTREAM", ""}}).workers, 0);
}

TEST(Environment, NamesTheFileToo) {
  EXPECT_EQ(parse({}, {{"WEIR_CONFIG", "a.yaml"}}).sources.file, "a.yaml");
  EXPECT_EQ(parse({"--config", "b.yaml"}, {{"WEIR_CONFIG", "a.yaml"}}).sources.file, "b.yaml");
  EXPECT_EQ(parse({}).sources.file, "");
}

TEST(LimitFlag, IsANumberPerWindow) {
  for (auto [text, window] :
       {std::pair{"5/1s", 1s}, {"5/30s", 30s}, {"5/1m", 60s}, {"5/24h", 86400s}}) {
    EXPECT_EQ(good(kUpstream, {"--limit", text}).default_rule.limit.window, window) << text;
  }
  const std::string units = "--limit: must be a whole number from 1 to 1000000000, not ";
  const std::string window = "--limit: must be whole seconds from 1s to 24h, not ";
  EXPECT_EQ(load(kUpstream, {"--limit", "5"}).errors,
            Errors{"--limit: must be N/WINDOW as in 100/1m, not \"5\""});
  EXPECT_EQ(load(kUpstream, {"--limit", "0/1m"}).errors, Errors{units + "\"0\""});
  EXPECT_EQ(load(kUpstream, {"--limit", "/"}).errors, (Errors{units + "\"\"", window + "\"\""}));
  EXPECT_EQ(load(kUpstream, {"--limit", "5/25h"}).errors, Errors{window + "\"25h\""});
  EXPECT_EQ(load(kUpstream, {}, {{"WEIR_LIMIT", "5/60"}}).errors,
            Errors{"WEIR_LIMIT: must be whole seconds from 1s to 24h, not \"60\""});
}

TEST(LimitFlag, HoldsThoughTheFilePassesTheRestThrough) {
  const Config config =
      good(std::string("default: {unlimited: true}\n") + kUpstream, {"--limit", "5/1s"});
  EXPECT_FALSE(config.default_rule.limit.unlimited);
  EXPECT_EQ(config.default_rule.limit.units, 5);
}

TEST(FlagErrors, AreListedAfterThoseOfTheFile) {
  std::string file = std::string("workers: many\n") + kUpstream;
  EXPECT_EQ(load(file, {"--listen", "here", "--upstream", "a", "--upstream", "https://b"},
                 {{"WEIR_LOG_FORMAT", "xml"}})
                .errors,
            (Errors{"weir.yaml:1: workers: must be a whole number from 0 to 1024, not \"many\"",
                    "--listen: must be an address as in 127.0.0.1:4040, not \"here\"",
                    "WEIR_LOG_FORMAT: must be text or json, not \"xml\"",
                    "--upstream: must be a URL as in http://127.0.0.1:9000, not \"a\"",
                    "--upstream: only http:// is supported, not \"https://b\""}));
}

TEST(FlagErrors, AreNotBlamedForTheSectionAround) {
  EXPECT_EQ(
      load("upstreams:\n  a: {servers: [http://a]}\n  b: {servers: [http://b]}\n",
           {"--limit", "5/1m"})
          .errors,
      Errors{"weir.yaml:1: default.upstream: must be given, as there are several upstreams and "
             "none is main"});
}

TEST(Flags, EtcdTurnsItsCoordinationOn) {
  const Loaded loaded = load(kUpstream, {"--etcd", "http://a:2379,http://b:2379"});
  ASSERT_EQ(loaded.errors, Errors{});
  EXPECT_EQ(loaded.config->coordination.kind, CoordinationOptions::Kind::etcd);
  EXPECT_EQ(loaded.config->coordination.etcd.endpoints,
            (std::vector<std::string>{"http://a:2379", "http://b:2379"}));
}

TEST(Environment, TurnsOnEtcdsCoordinationToo) {
  const Config config = good(kUpstream, {}, {{"WEIR_ETCD", "http://a:2379,http://b:2379"}});
  EXPECT_EQ(config.coordination.kind, CoordinationOptions::Kind::etcd);
  EXPECT_EQ(config.coordination.etcd.endpoints,
            (std::vector<std::string>{"http://a:2379", "http://b:2379"}));
}

TEST(FlagErrors, WithoutAFileNameTheFieldThatIsMissing) {
  EXPECT_EQ(load("", {}).errors, Errors{"upstreams: at least one is needed"});
}

TEST(CommandLine, ListsEveryUnknownFlag) {
  EXPECT_EQ(parse({"--lisen", "here"}).errors,
            (Errors{"--lisen: unknown flag; see --help", "here: unknown flag; see --help"}));
  EXPECT_EQ(parse({"--listen"}).errors.size(), 1U);
}

TEST(CommandLine, ListsAFlagWithoutItsValueBesideAllElse) {
  const Flags flags = parse({"--config", "a.yaml", "--lisen", "--workers", "many", "--limit"});
  ASSERT_EQ(flags.errors.size(), 2U);
  EXPECT_NE(flags.errors[0].find("--limit"), std::string::npos) << flags.errors[0];
  EXPECT_EQ(flags.errors[1], "--lisen: unknown flag; see --help");
  EXPECT_EQ(flags.sources.file, "a.yaml");
  EXPECT_EQ(flags.sources.overrides.at("workers").values, Errors{"many"});
}

TEST(CommandLine, TakesOnlyListsMoreThanOnce) {
  EXPECT_EQ(parse({"--workers", "1", "--workers", "2", "--upstream", "http://a", "--upstream",
                   "http://b"})
                .errors,
            Errors{"--workers: given more than once"});
}

TEST(CommandLine, TakesNoFileWithoutAName) {
  EXPECT_EQ(parse({"--config", ""}).errors, Errors{"--config: must be a file"});
}

TEST(CommandLine, DoesNotTakeWhatFollowsAServerForAnother) {
  EXPECT_EQ(parse({"--upstream", "http://a", "http://b"}).errors,
            Errors{"http://b: unknown flag; see --help"});
}

TEST(CommandLine, AnswersHelpAndVersion) {
  EXPECT_EQ(parse({"--version"}).answer->substr(0, 6), "weird ");
  std::string help = parse({"--help"}).answer.value_or("");
  for (const char* text : {"--config FILE", "--limit N/WINDOW", "Examples:", "WEIR_UPSTREAM="}) {
    EXPECT_NE(help.find(text), std::string::npos) << text;
  }
}

TEST(CommandLine, MayAskForACheckOnly) {
  EXPECT_TRUE(parse({"--check", "--config", "a.yaml"}).check);
  EXPECT_FALSE(parse({}).check);
}

}  // namespace
}  // namespace weir
