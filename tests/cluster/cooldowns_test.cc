// Cooldowns over replicas of the real program on one etcd: what the upstream said to one holds the
// others, and a process that comes back.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cluster/cluster.h"
#include "tests/support/answers.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

constexpr const char* kKeys = "/weir/v1/cooldowns/";

// Two replicas before an upstream that fails /429 and /503, with a Retry-After, and serves the
// rest.
class ClusterCooldowns : public testing::Test {
 protected:
  std::unique_ptr<WeirdProcess> start(const std::string& name) {
    return std::make_unique<WeirdProcess>(
        Config{.servers = {upstream_.url()},
               .upstream = "cooldown: {enabled: true, on_429: {base: 1ms, max: 1ms}, "
                           "on_503: {base: 1ms, max: 1ms}}",
               .rest = "replica: " + name + "\ncoordination: {kind: etcd, etcd: {endpoints: [" +
                       etcd_.endpoint(0) + "]}}"});
  }
  static Answer ask(const WeirdProcess& weird, const std::string& target,
                    const std::string& project = "a") {
    return asking(weird, target, {"X-Project: " + project}).read_answer();
  }
  std::string keys() { return etcd_.etcdctl({"get", "--prefix", "--keys-only", kKeys}); }
  void wait_for_key(const std::string& key) {
    eventually(key + " is in etcd", [&] { return keys().find(key + "\n") != std::string::npos; });
  }
  // Its watch has told it.
  static void wait_until_known(const WeirdProcess& weird) {
    eventually("the cooldown is known", [&] {
      const auto page = nlohmann::json::parse(weird.admin("/v1/upstreams").body);
      return page.at("upstreams").at(0).at("cooldowns").at("records") == 1;
    });
  }
  Instant arrived(std::size_t request) { return upstream_.requests().at(request).arrived; }

  const int seconds_ = sanitized ? 8 : 4;
  const Span delay_{std::chrono::seconds{seconds_}};
  EtcdCluster etcd_;
  FakeUpstream upstream_{serve([this](const Received& request) {
    const bool fails = request.target == "/429" || request.target == "/503";
    const std::string retry_after = "Retry-After: " + std::to_string(seconds_);
    return fails ? answer(std::stoi(request.target.substr(1)), "", {retry_after})
                 : answer(200, "ok");
  })};
};

TEST_F(ClusterCooldowns, A429SeenByOneDelaysTheOtherUntilASuccessFreesBoth) {
  const auto one = start("r1"), two = start("r2");
  EXPECT_EQ(ask(*one, "/429").status, 429);
  wait_for_key("/weir/v1/cooldowns/main/a/429");
  const auto value = nlohmann::json::parse(
      etcd_.etcdctl({"get", "--print-value-only", "/weir/v1/cooldowns/main/a/429"}));
  EXPECT_EQ(value.at("failures"), 1);
  for (const char* field : {"last", "not_before"}) {
    EXPECT_EQ(value.at(field).get<std::string>().size(), 24u) << "RFC 3339 with milliseconds";
  }
  wait_until_known(*two);
  EXPECT_EQ(ask(*two, "/other", "b").status, 200);
  EXPECT_EQ(ask(*two, "/next").status, 200);
  EXPECT_GE(arrived(2) - arrived(0), delay_);
  EXPECT_EQ(two->metric("weir_cooldown_waits_total", {{"upstream", "main"}}), 1);
  eventually("the success has deleted the key", [&] { return keys().empty(); });
  eventually("the other knows", [&] {
    return one->admin("/v1/upstreams").body.find("\"records\": 0") != std::string::npos;
  });
  EXPECT_EQ(ask(*one, "/free").status, 200);
  EXPECT_EQ(one->metric("weir_cooldown_waits_total"), 0);
}

TEST_F(ClusterCooldowns, A503SeenByOneDelaysEverybodyAtTheOther) {
  const auto one = start("r1"), two = start("r2");
  EXPECT_EQ(ask(*one, "/503", "a").status, 503);
  wait_for_key("/weir/v1/cooldowns/main/*/503");
  wait_until_known(*two);
  EXPECT_EQ(ask(*two, "/next", "b").status, 200);
  EXPECT_GE(arrived(1) - arrived(0), delay_);
}

TEST_F(ClusterCooldowns, DelaysSurviveARestartOfTheProcess) {
  auto one = start("r1");
  EXPECT_EQ(ask(*one, "/429").status, 429);
  wait_for_key("/weir/v1/cooldowns/main/a/429");
  one->kill();
  one.reset();
  one = start("r2");  // the old name is taken until its lease ends
  eventually("it is ready", [&] { return not_ready(*one).empty(); });
  wait_until_known(*one);
  EXPECT_EQ(ask(*one, "/next").status, 200);
  EXPECT_GE(arrived(1) - arrived(0), delay_);
  EXPECT_EQ(one->metric("weir_cooldown_waits_total"), 1);
}

TEST_F(ClusterCooldowns, NothingWaitsForAnEtcdThatIsAway) {
  const auto one = start("r1");
  eventually("it is ready", [&] { return not_ready(*one).empty(); });
  etcd_.freeze(0);
  EXPECT_EQ(ask(*one, "/other").status, 200);
  EXPECT_EQ(ask(*one, "/429").status, 429);
  EXPECT_EQ(ask(*one, "/next").status, 200);
  EXPECT_GE(arrived(2) - arrived(1), delay_) << "kept here";
  EXPECT_LT(arrived(1) - arrived(0), 1s);
  etcd_.thaw(0);
}

}  // namespace
}  // namespace weir::test
