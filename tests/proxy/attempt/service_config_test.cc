#include "proxy/attempt/service_config.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;
using Paths = std::vector<std::string>;

Paths bad_fields(const std::string& json) {
  Paths paths;
  for (const ServiceConfigError& error : ServiceConfig::read(json).errors) {
    EXPECT_FALSE(error.what.empty());
    paths.push_back(error.path);
  }
  return paths;
}

// A config of one policy in which one field is replaced; nothing: left out.
std::string retry_with(const std::string& field, const std::string& value) {
  std::map<std::string, std::string> fields{{"maxAttempts", "4"},
                                            {"initialBackoff", "\"0.1s\""},
                                            {"maxBackoff", "\"1s\""},
                                            {"backoffMultiplier", "2"},
                                            {"retryableStatusCodes", "[\"UNAVAILABLE\"]"}};
  fields[field] = value;
  std::string text;
  for (const auto& [name, content] : fields) {
    if (!content.empty()) text += (text.empty() ? "\"" : ", \"") + name + "\": " + content;
  }
  return R"({"methodConfig": [{"name": [{}], "retryPolicy": {)" + text + "}}]}";
}
std::string hedge_with(const std::string& fields) {
  return R"({"methodConfig": [{"name": [{}], "hedgingPolicy": {)" + fields + "}}]}";
}
std::string throttled(const std::string& tokens, const std::string& ratio) {
  std::string text;
  if (!tokens.empty()) text += "\"maxTokens\": " + tokens;
  if (!ratio.empty()) text += (text.empty() ? "\"tokenRatio\": " : ", \"tokenRatio\": ") + ratio;
  return R"({"retryThrottling": {)" + text + "}}";
}

ServiceConfig good(const std::string& json) {
  auto read = ServiceConfig::read(json);
  EXPECT_TRUE(read.errors.empty()) << json << read.errors.front().path;
  return std::move(read.config);
}
RetryPolicy good_retry(const std::string& json) { return *good(json).find("/x").config->retry(); }

TEST(ServiceConfig, EveryBadFieldOfARetryPolicyIsRefused) {  // G-22
  const std::map<std::string, std::vector<std::string>> bad{
      {"maxAttempts", {"", "1", "0", "-1", "\"4\"", "2.5", "null"}},
      {"initialBackoff",
       {"", "\"0s\"", "\"-1s\"", "\"-0.5s\"", "\"1sec\"", "\"1\"", "\"0.0000000001s\"", "1",
        "\".01s\"", "\"1.s\"", "\"315576000001s\"", "\"1e3s\"", "\"01s\"", "\"s\"", "null"}},
      {"maxBackoff", {"", "\"0s\"", "\"-1s\"", "\"1sec\"", "5"}},
      {"backoffMultiplier", {"", "0", "-1", "[]", "\"x\""}},
      {"perAttemptRecvTimeout", {"\"0s\"", "5", "\"1ms\""}},
      {"backoffJitter", {"\"some\"", "1"}}};
  for (const auto& [field, values] : bad) {
    for (const std::string& value : values) {
      EXPECT_EQ(bad_fields(retry_with(field, value)),
                Paths{".methodConfig[0].retryPolicy." + field})
          << value;
    }
  }
  const std::string codes = ".methodConfig[0].retryPolicy.retryableStatusCodes";
  for (auto value : {"", "[]", "true", "\"UNAVAILABLE\"", "{}"}) {
    EXPECT_EQ(bad_fields(retry_with("retryableStatusCodes", value)), Paths{codes}) << value;
  }
  for (auto value :
       {"true", "\"NO_SUCH\"", "17", "-1", "399", "600", "\"OK\"", "\"ok\"", "0", "1.5"}) {
    EXPECT_EQ(bad_fields(retry_with("retryableStatusCodes", "[1, " + std::string(value) + "]")),
              Paths{codes + "[1]"})
        << value;
  }
}

TEST(ServiceConfig, TakesEveryWayToWriteARetryPolicy) {  // G-22
  EXPECT_EQ(good_retry(retry_with("maxAttempts", "9")).max_attempts, 5) << "capped";
  EXPECT_EQ(good_retry(retry_with("initialBackoff", "\"0.000000001s\"")).backoff.initial, 1ns);
  EXPECT_EQ(good_retry(retry_with("initialBackoff", "\"0.0005s\"")).backoff.initial, 500us);
  EXPECT_EQ(good_retry(retry_with("initialBackoff", "\"1.5s\"")).backoff.initial, 1500ms);
  good(retry_with("maxBackoff", "\"315576000000s\""));
  EXPECT_EQ(good_retry(retry_with("backoffMultiplier", "0.5")).backoff.multiplier, 0.5);
  EXPECT_EQ(good_retry(retry_with("backoffJitter", "\"full\"")).backoff.jitter, Jitter::full);
  const auto codes =
      good_retry(retry_with("retryableStatusCodes", "[\"unAvailable\", 4, 500]")).retryable;
  EXPECT_TRUE(codes.contains({StatusCode::unavailable, 0}));
  EXPECT_TRUE(codes.contains({StatusCode::deadline_exceeded, 0}));
  EXPECT_TRUE(codes.contains({StatusCode::unknown, 500}));
  EXPECT_FALSE(codes.contains({StatusCode::unknown, 501}));
  EXPECT_FALSE(codes.contains({StatusCode::ok, 500}));
  good(R"({"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2, "initialBackoff": "1s",
          "maxBackoff": "1s", "backoffMultiplier": 1, "perAttemptRecvTimeout": "1s",
          "retryableStatusCodes": [], "unknown": true}}]})");
}

TEST(ServiceConfig, HedgingPoliciesAreCheckedToo) {  // G-22
  const std::string path = ".methodConfig[0].hedgingPolicy.";
  EXPECT_EQ(bad_fields(hedge_with("")), Paths{path + "maxAttempts"});
  for (auto attempts : {"1", "0", "-1", "\"4\"", "2.5", "null"}) {
    EXPECT_EQ(bad_fields(hedge_with("\"maxAttempts\": " + std::string(attempts))),
              Paths{path + "maxAttempts"})
        << attempts;
  }
  for (auto timeout : {"\"0s\"", "5", "\"1ms\""}) {
    EXPECT_EQ(bad_fields(hedge_with(R"("maxAttempts": 2, "perAttemptRecvTimeout": )" +
                                    std::string(timeout))),
              Paths{path + "perAttemptRecvTimeout"})
        << timeout;
  }
  for (auto delay : {"\"1sec\"", "\".5s\"", "null", "[]"}) {
    EXPECT_EQ(bad_fields(hedge_with(R"("maxAttempts": 2, "hedgingDelay": )" + std::string(delay))),
              Paths{path + "hedgingDelay"})
        << delay;
  }
  for (auto codes : {"true", "\"UNAVAILABLE\"", "{}"}) {
    EXPECT_EQ(
        bad_fields(hedge_with(R"("maxAttempts": 2, "nonFatalStatusCodes": )" + std::string(codes))),
        Paths{path + "nonFatalStatusCodes"})
        << codes;
  }
  for (auto code : {"17", "-1", "399", "600", "0", "\"ok\"", "1.5", "true"}) {
    EXPECT_EQ(bad_fields(hedge_with(R"("maxAttempts": 2, "nonFatalStatusCodes": [14, )" +
                                    std::string(code) + "]")),
              Paths{path + "nonFatalStatusCodes[1]"})
        << code;
  }
  EXPECT_EQ(bad_fields(hedge_with(R"("maxAttempts": 2, "hedgingDelay": "-1s")")),
            Paths{path + "hedgingDelay"});
  EXPECT_EQ(bad_fields(hedge_with(R"("maxAttempts": 2, "hedgingDelay": 1)")),
            Paths{path + "hedgingDelay"});
  EXPECT_EQ(bad_fields(hedge_with(R"("maxAttempts": 2, "nonFatalStatusCodes": ["OK", "X"])")),
            (Paths{path + "nonFatalStatusCodes[0]", path + "nonFatalStatusCodes[1]"}));
  const auto config = good(hedge_with(R"("maxAttempts": 7, "nonFatalStatusCodes": [])"));
  EXPECT_EQ(config.find("/").config->hedging()->max_attempts, 5);
  EXPECT_EQ(config.find("/").config->hedging()->delay, 0s);
  good(hedge_with(R"("maxAttempts": 2, "hedgingDelay": "0s")"));
}

TEST(ServiceConfig, OneMethodHasOnePolicy) {  // G-22
  EXPECT_EQ(bad_fields(R"({"methodConfig": [{"name": [{}], "retryPolicy": 1}]})"),
            Paths{".methodConfig[0].retryPolicy"});
  EXPECT_EQ(bad_fields(R"({"methodConfig": [{"name": [{}], "hedgingPolicy": []}]})"),
            Paths{".methodConfig[0].hedgingPolicy"});
  const auto both = bad_fields(
      R"({"methodConfig": [{"name": [{}], "retryPolicy": {}, "hedgingPolicy": {"maxAttempts": 2}}]})");
  EXPECT_EQ(both.front(), ".methodConfig[0]");
}

TEST(ServiceConfig, TokensAreThousandths) {  // G-22
  const Paths tokens{".retryThrottling.maxTokens"}, ratio{".retryThrottling.tokenRatio"};
  for (auto bad : {"", "0", "-1", "1000.1", "1001", "\"10\"", "0.0001"}) {
    EXPECT_EQ(bad_fields(throttled(bad, "0.1")), tokens) << bad;
  }
  for (auto bad : {"", "0", "-0.1", "0.0009", "\"1\""}) {
    EXPECT_EQ(bad_fields(throttled("10", bad)), ratio) << bad;
  }
  EXPECT_EQ(bad_fields(R"({"retryThrottling": 10})"), Paths{".retryThrottling"});
  EXPECT_EQ(*good(throttled("10", "1")).throttling(), (RetryThrottling{10'000, 1000}));
  EXPECT_EQ(*good(throttled("10", "1.0")).throttling(), (RetryThrottling{10'000, 1000}));
  EXPECT_EQ(*good(throttled("1000", "0.29")).throttling(), (RetryThrottling{1'000'000, 290}));
  EXPECT_EQ(*good(throttled("10.5", "0.1239")).throttling(), (RetryThrottling{10'500, 123}));
}

TEST(ServiceConfig, NamesAreUniqueAndAMethodHasAService) {  // G-22
  EXPECT_EQ(bad_fields(R"({"methodConfig": [{"name": [{"method": "m"}]}]})"),
            Paths{".methodConfig[0].name[0].service"});
  EXPECT_EQ(bad_fields(R"({"methodConfig": [{"name": [{}]}, {"name": [{"service": "s"}, {}]}]})"),
            Paths{".methodConfig[1].name[1]"});
  EXPECT_EQ(bad_fields(R"({"methodConfig": [{"name": [{"path": "/a*b"}]}]})"),
            Paths{".methodConfig[0].name[0].path"});
  EXPECT_EQ(good(R"({"methodConfig": [{"timeout": "1s"}]})").find("/").config, nullptr);
}

TEST(ServiceConfig, AllBadFieldsAreListed) {  // G-22
  EXPECT_EQ(bad_fields(R"({"methodConfig": [{"name": [{}], "timeout": 1, "retryPolicy":
              {"maxAttempts": 1, "initialBackoff": "1", "maxBackoff": "1s", "backoffMultiplier": 0,
               "retryableStatusCodes": []}}, 7], "retryThrottling": {}})"),
            (Paths{".retryThrottling.maxTokens", ".retryThrottling.tokenRatio",
                   ".methodConfig[0].timeout", ".methodConfig[0].retryPolicy.maxAttempts",
                   ".methodConfig[0].retryPolicy.initialBackoff",
                   ".methodConfig[0].retryPolicy.backoffMultiplier",
                   ".methodConfig[0].retryPolicy.retryableStatusCodes", ".methodConfig[1]"}));
}

TEST(ServiceConfig, ThrottlingIsCheckedAndHeldWithoutAnyMethod) {  // G-24
  EXPECT_EQ(bad_fields(R"({"retryThrottling": {"maxTokens": 0, "tokenRatio": 1}})"),
            Paths{".retryThrottling.maxTokens"});
  EXPECT_TRUE(good(throttled("10", "0.1")).throttling());
}

TEST(ServiceConfig, TheCapOfAttemptsCanBeSet) {  // G-10
  const auto attempts = [](const std::string& service, const std::string& cap) {
    std::string json = retry_with("maxAttempts", service);
    json.insert(1, "\"maxAttemptsCap\": " + cap + ", ");
    return good_retry(json).max_attempts;
  };
  EXPECT_EQ(attempts("9", "4"), 4);
  EXPECT_EQ(attempts("9", "7"), 7);
  EXPECT_EQ(attempts("3", "10"), 3);
  EXPECT_EQ(attempts("8", "-1"), 5);
  EXPECT_EQ(attempts("3", "0"), 3);
}

TEST(ServiceConfig, TheMostSpecificNameWins) {
  const auto config = good(R"({"methodConfig": [
      {"name": [{}], "timeout": "1s"}, {"name": [{"service": "a.B"}], "timeout": "2s"},
      {"name": [{"service": "a.B", "method": "C"}], "timeout": "3s"},
      {"name": [{"path": "/reports/**"}], "timeout": "4s"}]})");
  const auto timeout = [&](std::string_view path) { return *config.find(path).config->timeout; };
  EXPECT_EQ(timeout("/x"), 1s);
  EXPECT_EQ(timeout("/a.B/D"), 2s);
  EXPECT_EQ(timeout("/a.B/C"), 3s);
  EXPECT_EQ(timeout("/a.B/C/d"), 1s);
  EXPECT_EQ(timeout("/reports/7"), 4s);
  EXPECT_EQ(config.find("/x").named, ServiceConfig::Named::by_default);
  EXPECT_EQ(config.find("/a.B/D").named, ServiceConfig::Named::path);
  EXPECT_EQ(config.find("/reports").named, ServiceConfig::Named::path);
}

TEST(StatusCode, AnHttpAnswerCountsAsGrpcMapsIt) {
  const auto code = [](int status, std::vector<http::Field> fields = {}) {
    return outcome_of_answer(status, fields).code;
  };
  for (int status : {429, 502, 503, 504}) EXPECT_EQ(code(status), StatusCode::unavailable);
  for (int status : {200, 204, 304, 302}) EXPECT_EQ(code(status), StatusCode::ok);
  EXPECT_EQ(code(400), StatusCode::internal);
  EXPECT_EQ(code(401), StatusCode::unauthenticated);
  EXPECT_EQ(code(403), StatusCode::permission_denied);
  EXPECT_EQ(code(404), StatusCode::unimplemented);
  EXPECT_EQ(code(500), StatusCode::unknown);
  EXPECT_EQ(code(200, {{"Grpc-Status", "14"}}), StatusCode::unavailable);
  EXPECT_EQ(code(503, {{"grpc-status", "0"}}), StatusCode::ok);
  EXPECT_EQ(code(200, {{"grpc-status", "17"}}), StatusCode::unknown);
}

TEST(StatusCode, OnlySignsOfOverloadSayThatSendingLessWouldHaveHelped) {
  const auto load = [](StatusCode code, int http_status) { return load_of({code, http_status}); };
  EXPECT_EQ(load(StatusCode::ok, 200), Load::borne);
  EXPECT_EQ(load(StatusCode::unavailable, 429), Load::too_much);
  EXPECT_EQ(load(StatusCode::unavailable, 503), Load::too_much);
  EXPECT_EQ(load(StatusCode::resource_exhausted, 200), Load::too_much);
  EXPECT_EQ(load(StatusCode::unavailable, 200), Load::too_much);
  EXPECT_EQ(load(StatusCode::deadline_exceeded, 0), Load::too_much);
  EXPECT_EQ(load(StatusCode::unavailable, 0), Load::unknown) << "a connection that was lost";
  EXPECT_EQ(load(StatusCode::unavailable, 502), Load::unknown);
  EXPECT_EQ(load(StatusCode::unknown, 500), Load::unknown);
  EXPECT_EQ(load(StatusCode::deadline_exceeded, 200), Load::unknown) << "of the request itself";
}

}  // namespace
}  // namespace weir
