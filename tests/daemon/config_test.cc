// A configuration file and what becomes of it. One bad file per error is in bad_configs/; its first
// lines say what must be said about it.

#include "daemon/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

namespace weir {
namespace {

using namespace std::chrono_literals;
using Errors = std::vector<std::string>;

constexpr const char* kUpstream = "upstreams: {main: {servers: [http://127.0.0.1:9000]}}\n";

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The configuration of a text that must be good.
Config good(const std::string& text, const Overrides& overrides = {}) {
  Loaded loaded = parse_config(text, "weir.yaml", overrides);
  EXPECT_EQ(loaded.errors, Errors{});
  return loaded.config.value_or(Config{});
}

Errors errors_of(const std::string& text, const Overrides& overrides = {}) {
  Loaded loaded = parse_config(text, "weir.yaml", overrides);
  EXPECT_EQ(loaded.config.has_value(), loaded.errors.empty());
  return loaded.errors;
}

std::string repeat(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

class BadConfig : public testing::TestWithParam<std::string> {};

TEST_P(BadConfig, IsRefusedWithExactlyTheErrorsItExpects) {
  std::string text =
      read(std::filesystem::path(WEIR_TEST_DATA) / "daemon/bad_configs" / GetParam());
  Errors expected;
  std::istringstream lines(text);
  constexpr std::string_view kMark = "# expect: ";
  for (std::string line; std::getline(lines, line) && line.starts_with(kMark);) {
    expected.push_back("weir.yaml:" + line.substr(kMark.size()));
  }
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(errors_of(text), expected);
}

std::vector<std::string> bad_configs() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(WEIR_TEST_DATA "/daemon/bad_configs")) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Files, BadConfig, testing::ValuesIn(bad_configs()), [](const auto& test) {
  return test.param.substr(0, test.param.find('.'));
});

TEST(Config, NeedsNothingButAnUpstream) {
  Config config = good(kUpstream);
  EXPECT_EQ(config.listen, (ServerAddress{"0.0.0.0", 4040}));
  EXPECT_EQ(config.admin, (ServerAddress{"127.0.0.1", 9464}));
  EXPECT_EQ(config.drain_timeout, 30s);
  EXPECT_EQ(config.default_rule.name, "default");
  EXPECT_EQ(config.default_rule.resource, "{path}");
  EXPECT_EQ(config.default_rule.limit.units, 100);
  EXPECT_EQ(config.default_rule.limit.window, 60s);
  EXPECT_EQ(config.default_rule.limit.wait, std::nullopt);
  EXPECT_TRUE(config.rules.empty());
  ASSERT_EQ(config.upstreams.size(), 1U);
  EXPECT_EQ(config.upstreams[0].name, "main");
  EXPECT_EQ(config.upstreams[0].servers, (std::vector<ServerAddress>{{"127.0.0.1", 9000}}));
}

TEST(Config, TakesEveryFieldAtItsDefault) {
  std::string text = read(WEIR_TEST_DATA "/daemon/defaults.yaml");
  EXPECT_EQ(to_json(good(text)), to_json(good(kUpstream)));
}

TEST(Config, ATenantIsSingledOutBySfbBeforeItsNextRehash) {
  const auto rehash = [](const std::string& throttle) {
    return good("upstreams: {main: {servers: [http://a], throttle: " + throttle + "}}")
        .upstreams[0]
        .throttle.rehash;
  };
  EXPECT_EQ(rehash("{kind: sfb}"), 60s);
  EXPECT_EQ(rehash("{kind: sfb, rehash: 5s}"), 5s);
  EXPECT_EQ(rehash("{kind: bloom}"), 5s);
}

TEST(Config, ProbesMatterOnlyWhereThereAreSome) {
  const Config config =
      good("upstreams: {main: {servers: [http://a], throttle: {kind: sfq, buckets: 2}}}");
  EXPECT_EQ(config.upstreams[0].throttle.buckets, 2);
}

TEST(Config, ReadsEveryFieldOfARule) {
  Config config = good(R"(
rules:
  - name: reports
    match: {path: /reports/*, methods: [GET, HEAD], host: Example.COM}
    resource: "{host}{path}"
    limit: 7
    window: 1h
    mode: sliding
    wait: 1.5s
    queue: fair
    shadow: true
    upstream: b
  - name: health
    match: [{path: /livez}, {path: /health/**}]
    unlimited: true
  - name: slow
    mode: in_flight
    wait: 0s
upstreams:
  main: {servers: [http://a]}
  b: {servers: ["http://[::1]:9000/"]}
)");
  ASSERT_EQ(config.rules.size(), 3U);
  const Rule& reports = config.rules[0];
  ASSERT_EQ(reports.matches.size(), 1U);
  EXPECT_EQ(reports.matches[0].path, "/reports/*");
  EXPECT_EQ(reports.matches[0].methods, (std::vector<std::string>{"GET", "HEAD"}));
  EXPECT_EQ(reports.matches[0].host, "example.com");
  EXPECT_EQ(reports.resource, "{host}{path}");
  EXPECT_EQ(reports.limit.units, 7);
  EXPECT_EQ(reports.limit.window, 3600s);
  EXPECT_EQ(reports.limit.mode, Mode::sliding);
  EXPECT_EQ(reports.limit.wait, 1500ms);
  EXPECT_EQ(reports.limit.queue, Queue::fair);
  EXPECT_TRUE(reports.limit.shadow);
  EXPECT_EQ(reports.upstream, "b");
  EXPECT_EQ(config.rules[1].matches.size(), 2U);
  EXPECT_TRUE(config.rules[1].limit.unlimited);
  EXPECT_EQ(config.rules[1].upstream, "main");
  EXPECT_EQ(config.rules[2].limit.mode, Mode::in_flight);
  EXPECT_EQ(config.rules[2].limit.wait, 0ms);
  EXPECT_EQ(config.upstreams[0].servers[0], (ServerAddress{"a", 80}));
  EXPECT_EQ(config.upstreams[1].servers[0], (ServerAddress{"::1", 9000}));
}

TEST(Config, SendsARuleToTheOnlyUpstreamWhateverItsName) {
  Config config = good("rules: [{name: a}]\nupstreams: {other: {servers: [http://a]}}\n");
  EXPECT_EQ(config.rules[0].upstream, "other");
  EXPECT_EQ(config.default_rule.upstream, "other");
}

TEST(Config, TakesOffWithAndWithoutQuotes) {
  for (const char* off : {"off", "\"off\"", "'off'"}) {
    EXPECT_EQ(good(std::string("log: {level: ") + off + "}\n" + kUpstream).log.level,
              LogOptions::Level::off);
    EXPECT_EQ(
        good("upstreams: {main: {servers: [http://a], throttle: {kind: " + std::string(off) + "}}}")
            .upstreams[0]
            .throttle.kind,
        ThrottleOptions::Kind::off);
  }
}

TEST(Config, TakesASectionThatIsLeftEmpty) {
  good(std::string("log:\nrules:\nlimits:\ndefault:\ntrusted_proxies:\n") + kUpstream);
}

TEST(Config, ExpandsAliases) {
  Config config =
      good("upstreams:\n  main: &m\n    servers: [http://a]\n    connect_timeout: 2s\n  b: *m\n");
  ASSERT_EQ(config.upstreams.size(), 2U);
  EXPECT_EQ(config.upstreams[1].connect_timeout, 2s);
}

TEST(Config, ExpandsAliasesOfNamesToo) {
  Config config = good("upstreams: {&n main: {servers: [http://a]}}\nrules: [{name: *n}]\n");
  EXPECT_EQ(config.rules[0].name, "main");
}

TEST(Config, TakesTheTenantFromAddressHeaderOrSegment) {
  EXPECT_EQ(good(kUpstream).tenant.kind, TenantSource::Kind::client_ip);
  TenantSource header = good(std::string("tenant: header:X-Key\n") + kUpstream).tenant;
  EXPECT_EQ(header.kind, TenantSource::Kind::header);
  EXPECT_EQ(header.header, "x-key");
  TenantSource segment = good(std::string("tenant: segment:2\n") + kUpstream).tenant;
  EXPECT_EQ(segment.kind, TenantSource::Kind::segment);
  EXPECT_EQ(segment.segment, 2);
}

TEST(Config, ReadsAServiceConfigFromAFileBesideIt) {
  std::string asked;
  ReadFile read_file = [&](const std::string& name) -> FileText {
    asked = name;
    return "{\"methodConfig\": [\n{\"name\": [{}], \"name\": []}]}";
  };
  Loaded loaded =
      parse_config("upstreams: {main: {servers: [http://a], service_config: retry.json}}",
                   "/etc/weir/weir.yaml", {}, read_file);
  EXPECT_EQ(asked, "/etc/weir/retry.json");
  EXPECT_EQ(
      loaded.errors,
      Errors{"/etc/weir/retry.json:2: upstreams.main.service_config: \"name\" is given twice"});
}

TEST(Config, RefusesAServiceConfigInAFileThatIsNoYamlOrNoMap) {
  const auto errors = [](const std::string& text) {
    const ReadFile read_file = [&](const std::string&) -> FileText { return text; };
    return parse_config("upstreams: {main: {servers: [http://a], service_config: retry.json}}",
                        "weir.yaml", {}, read_file)
        .errors;
  };
  const Errors no_yaml = errors("\n{\"methodConfig\": ");
  ASSERT_EQ(no_yaml.size(), 1U);
  EXPECT_TRUE(no_yaml[0].starts_with("retry.json:3: upstreams.main.service_config: "))
      << no_yaml[0];
  EXPECT_EQ(errors("[1, 2]"),
            Errors{"weir.yaml:1: upstreams.main.service_config: must be a map or the name of a "
                   "file that has one, not a list"});
}

TEST(Config, RefusesMoreEntriesThanAnybodyNeeds) {
  EXPECT_EQ(errors_of("rules: [" + repeat("{},", 10'001) + "]\n" + kUpstream),
            Errors{"weir.yaml:1: rules: must not have more than 10000 entries"});
  std::string upstreams = "upstreams:\n";
  for (int i = 0; i <= 1'000; ++i) {
    upstreams += "  u" + std::to_string(i) + ": {servers: [http://a]}\n";
  }
  EXPECT_EQ(errors_of(upstreams),
            Errors{"weir.yaml:1: upstreams: must not have more than 1000 entries"});
}

TEST(Config, RefusesNestingBeyondAllReason) {
  for (const char* nest : {"[", "{a: ", "- ", "? ", "[{"}) {
    Errors errors = errors_of(repeat(nest, 100'000));
    ASSERT_EQ(errors.size(), 1U) << nest;
    EXPECT_EQ(errors[0], "weir.yaml:1: more than 64 levels deep") << nest;
  }
}

TEST(Config, RefusesAliasesThatMultiply) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    std::string previous = "*a" + std::to_string(i - 1);
    std::string name = "a" + std::to_string(i);
    text += name + ": &" + name + " [" + repeat(previous + ", ", 9) + previous + "]\n";
  }
  EXPECT_EQ(errors_of(text), Errors{"weir.yaml:5: too many values"});
}

TEST(Config, RefusesWhatIsNoText) {
  EXPECT_EQ(errors_of(std::string("\n\nreplica: a\0b\n", 14)),
            Errors{"weir.yaml:3: a control character"});
  EXPECT_EQ(errors_of("\nreplica: \x04\n"), Errors{"weir.yaml:2: a control character"});
  EXPECT_EQ(errors_of("replica: \xff\n"), Errors{"weir.yaml:1: not UTF-8"});
  EXPECT_EQ(errors_of(repeat("#", (1 << 20) + 1)), Errors{"weir.yaml:1: larger than 1 MiB"});
}

TEST(Config, NamesAFileThatCannotBeReadAndStillListsBadFlags) {
  Loaded loaded = load_config({"/nonexistent/weir.yaml", {{"workers", {"--workers", {"many"}}}}});
  EXPECT_FALSE(loaded.config);
  EXPECT_EQ(loaded.errors,
            (Errors{"/nonexistent/weir.yaml: cannot be read: No such file or directory",
                    "--workers: must be a whole number from 0 to 1024, not \"many\""}));
  EXPECT_EQ(load_config({"/tmp", {}}).errors, Errors{"/tmp: cannot be read: Is a directory"});
}

TEST(ConfigAsJson, HasTheShapeOfTheFileAndReadsBackTheSame) {
  Config config = good(R"(
listen: "[::1]:0"
drain_timeout: 90s
trusted_proxies: [10.0.0.0/8, "fd00::/8", 192.0.2.1]
log: {level: off, access: true}
replica: "r 1: #2"
rules:
  - {name: a, mode: in_flight, wait: 250ms, match: {methods: [GET]}}
  - {name: b, window: 24h, match: [{path: /b/**}, {host: b.example}], resource: "{header:X-Key}"}
default: {unlimited: true}
tenant: segment:3
upstreams:
  main: {servers: [http://a, "http://[::1]:81"], response_timeout: 2m}
)");
  auto json = to_json(config);
  EXPECT_EQ(json["listen"], "[::1]:0");
  EXPECT_EQ(json["drain_timeout"], "90s");
  EXPECT_EQ(json["rules"][0]["wait"], "250ms");
  EXPECT_EQ(json["rules"][1]["window"], "24h");
  EXPECT_EQ(json["upstreams"]["main"]["retry_budget"]["percent"].dump(), "20");
  EXPECT_EQ(json["upstreams"]["main"]["servers"][1], "http://[::1]:81");
  EXPECT_EQ(to_json(good(json.dump())), json);
  EXPECT_EQ(to_json(good(json.dump(2))), json);
}

TEST(ConfigAsJson, MasksPasswords) {
  Config config = good(kUpstream);
  config.coordination.etcd.endpoints = {"http://root:secret@etcd:2379", "http://etcd:2379"};
  EXPECT_EQ(to_json(config)["coordination"]["etcd"]["endpoints"],
            (nlohmann::ordered_json{"http://***@etcd:2379", "http://etcd:2379"}));
}

TEST(Reload, MayChangeRulesAndUpstreams) {
  Config next =
      good("rules: [{name: a}]\nlog: {level: debug}\nupstreams: {main: {servers: [http://b]}}\n");
  EXPECT_EQ(check_reload(good(kUpstream), next), Errors{});
}

TEST(Reload, NeedsARestartForWhatIsBoundOrShared) {
  Config running = good(kUpstream);
  Config next = running;
  next.listen.port = 1;
  next.admin.host = "::";
  next.workers = 3;
  next.replica = "r2";
  next.coordination.etcd.endpoints = {"http://root:other@127.0.0.1:2379"};
  EXPECT_EQ(check_reload(running, next),
            (Errors{"listen: a change needs a restart", "admin: a change needs a restart",
                    "workers: a change needs a restart", "replica: a change needs a restart",
                    "coordination: a change needs a restart"}));
}

}  // namespace
}  // namespace weir
