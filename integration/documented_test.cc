// docker-compose.yml as it stands, all of it, and what the README says is to be seen there.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "integration/load.h"
#include "integration/project.h"
#include "tests/support/eventually.h"
#include "tests/support/window_time.h"

namespace weir::test {
namespace {

class IntegrationDocumented : public ::testing::Test {
 protected:
  // One for all, which each leaves as it was but for the last.
  static void SetUpTestSuite() {
    shared = std::make_unique<Project>(
        std::vector<std::string>{},
        std::map<std::string, std::string>{
            {"WEIR_IMAGES", "weir-integration"}, {"WEIR_PORT", "0"}, {"PROMETHEUS_PORT", "0"}});
    shared->compose({"up", "-d", "--no-build"});
  }
  static void TearDownTestSuite() { shared.reset(); }

  IntegrationDocumented() : project(*shared), proxy(published("balancer", "4040")) {
    eventually("the balancer has a replica", [&] { return get(proxy + "/free/").status == 200; });
  }

  std::string published(const std::string& service, const std::string& port) const {
    std::string address = project.compose({"port", service, port});
    while (address.ends_with('\n')) address.pop_back();
    return "http://" + address;
  }

  std::string etcdctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"exec", "-T", "etcd1", "etcdctl"});
    return project.compose(std::move(arguments));
  }

  // Asks so often, one after another; how often it was served within two seconds.
  int served(const std::string& path, int times) const {
    int count = 0;
    for (int i = 0; i < times; ++i) count += get(proxy + path).status == 200;
    return count;
  }

  static std::unique_ptr<Project> shared;
  const Project& project;
  const std::string proxy;
};

std::unique_ptr<Project> IntegrationDocumented::shared;

TEST_F(IntegrationDocumented, ThreeReplicasKeepOneLimitThatEtcdctlShows) {
  wait_for_window(std::chrono::seconds{10});
  EXPECT_EQ(served("/quick/a", 22), 20);
  std::istringstream keys(
      etcdctl({"get", "--prefix", "--keys-only", "/weir/v1/claims/quick:/quick/a@"}));
  std::set<std::string> replicas;
  int claims = 0;
  for (std::string key; std::getline(keys, key);) {
    if (key.empty()) continue;
    const std::string claim = key.substr(key.rfind('/') + 1);
    replicas.insert(claim.substr(0, claim.rfind('-')));
    ++claims;
  }
  EXPECT_EQ(claims, 20);
  EXPECT_EQ(replicas.size(), 3u) << "round robin";
}

TEST_F(IntegrationDocumented, PrometheusScrapesAllAndCountsRequests) {
  const std::string prometheus = published("prometheus", "9090");
  const auto query = [&](const std::string& text) {
    const Page page = get(prometheus + "/api/v1/query?query=" + text);
    const auto told = nlohmann::json::parse(page.body, nullptr, false);
    return told.is_object() ? told.at("data").at("result") : nlohmann::json::array();
  };
  // Three replicas, three members, the balancer.
  eventually("seven are up", [&] {
    const auto up = query("sum(up)");
    return !up.empty() && up.at(0).at("value").at(1) == "7";
  });
  EXPECT_EQ(served("/free/", 30), 30);
  eventually("they are counted", [&] {
    const auto rate = query("sum%20by%20(rule,outcome)%20(rate(weir_requests_total%5B1m%5D))");
    return std::any_of(rate.begin(), rate.end(), [](const auto& series) {
      return series.at("metric").value("rule", "") == "free" && series.at("value").at(1) != "0";
    });
  });
}

TEST_F(IntegrationDocumented, ThreeAreLiveAndTwoGoOnWithoutTheThird) {
  const auto live = [&] {
    const std::string keys = etcdctl({"get", "--prefix", "--keys-only", "/weir/v1/replicas/"});
    return std::count(keys.begin(), keys.end(), '/') / 4;
  };
  eventually("three are live", [&] { return live() == 3; });
  project.containers("weird").at(1).kill();
  eventually("the balancer leaves it out",
             [&] { return served("/free/", 6) == 6 && served("/free/", 6) == 6; });
  wait_for_window(std::chrono::seconds{10});
  EXPECT_EQ(served("/quick/b", 22), 20);
  eventually("two are live", [&] { return live() == 2; });
}

}  // namespace
}  // namespace weir::test
