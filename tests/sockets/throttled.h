#pragma once

// What tests of throttles share: an upstream that answers as the path says, and a throttle that has
// a few tokens and next to no more coming, so that a test knows who gets one.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/answers.h"
#include "tests/support/windows.h"

namespace weir::test {

inline const std::string kTenant = "tenant: header:x-tenant";

// So many tokens, and another one in a quarter of an hour.
inline std::string tokens(int count, const std::string& more = "") {
  return "throttle: {kind: aimd, initial_rate: 0.001, floor: 0.0001, ceiling: 0.001, burst: " +
         std::to_string(count * 1000) + "s" + more + "}";
}
inline const std::string kWait = ", on_limit: wait";
inline const std::string kRetrying =
    "\nservice_config: {methodConfig: [{name: [{}], retryPolicy: {maxAttempts: 5, "
    "initialBackoff: 0.01s, maxBackoff: 0.01s, backoffMultiplier: 1, retryableStatusCodes: "
    "[UNAVAILABLE]}}]}";

inline double rate(const WeirdProcess& weird) { return weird.metric("weir_throttle_rate"); }
inline nlohmann::json shown(const WeirdProcess& weird) {
  return nlohmann::json::parse(weird.admin("/v1/upstreams").body).at("upstreams").at(0);
}
// Every attempt that was let go has told what became of it.
inline void expect_none_dropped(const WeirdProcess& weird) {
  EXPECT_EQ(shown(weird).at("throttle").at("dropped"), 0);
}
inline double denials(const WeirdProcess& weird) { return weird.metric("weir_throttled_total"); }

// Answers with the status that the path names; /held when the gate opens, /left never.
class Throttled : public testing::Test {
 protected:
  Config config(const std::string& upstream, const std::string& rule = "{unlimited: true}") {
    return {
        .servers = {upstream_.url()}, .upstream = upstream, .rest = kTenant, .default_rule = rule};
  }
  static RawClient client(const WeirdProcess& weird, const std::string& target,
                          const std::string& tenant = "a") {
    return asking(weird, target, {"X-Tenant: " + tenant});
  }
  static Answer ask(const WeirdProcess& weird, const std::string& target,
                    const std::string& tenant = "a") {
    return client(weird, target, tenant).read_answer();
  }
  // Asked one after another; the others are turned away.
  static int served(const WeirdProcess& weird, int requests, const std::string& tenant = "a") {
    int count = 0;
    RawClient one(weird.port());
    for (int i = 0; i < requests; ++i) {
      one.send(lines({"GET /200 HTTP/1.1", "Host: h", "X-Tenant: " + tenant}));
      if (one.read_answer().status == 200) ++count;
    }
    return count;
  }

  Gate go_on_;
  FakeUpstream upstream_{[this](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target == "/left") return;
      if (request->target == "/held") connection.wait(go_on_);
      const int status = request->target == "/held" ? 200 : std::stoi(request->target.substr(1));
      connection.send(answer(status, "from the upstream"));
    }
  }};
};

}  // namespace weir::test
