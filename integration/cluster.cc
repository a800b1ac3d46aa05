#include "integration/cluster.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/eventually.h"

namespace weir::test {
namespace {

std::string config(const ClusterSettings& settings, std::uint16_t recorder) {
  return "admin: 0.0.0.0:9464\n"
         "drain_timeout: 10s\n"
         "tenant: " +
         settings.tenant +
         "\n"
         "coordination:\n"
         "  kind: etcd\n"
         "  etcd: {endpoints: [\"http://etcd1.store:2379\", \"http://etcd2.store:2379\", "
         "\"http://etcd3.store:2379\"]}\n"
         "upstreams:\n"
         "  main:\n"
         "    servers: [\"http://recorder:" +
         std::to_string(recorder) + "\"]\n" + settings.upstream_fields + "rules:\n" +
         settings.rules;
}

std::map<std::string, std::string> environment(const ClusterSettings& settings,
                                               const std::filesystem::path& folder) {
  std::map<std::string, std::string> all = settings.variables;
  all.insert({{"WEIR_IMAGES", "weir-integration"},
              {"WEIR_YAML", (folder / "weir.yaml").string()},
              {"WEIR_PORT", "0"},
              {"PROMETHEUS_PORT", "0"}});
  return all;
}

std::vector<std::string> files(const ClusterSettings& settings) {
  std::vector<std::string> all{"integration/compose.yml"};
  all.insert(all.end(), settings.files.begin(), settings.files.end());
  return all;
}

// One kind after another: compose would wait for the health of what is asked for together.
Project& up(Project& project, const std::vector<std::vector<std::string>>& services) {
  for (std::vector<std::string> kind : services) {
    kind.insert(kind.begin(), {"up", "-d", "--no-build", "--no-deps"});
    project.compose(std::move(kind));
  }
  return project;
}

}  // namespace

ConfigFolder::ConfigFolder(const std::string& text) {
  const std::filesystem::path file = folder_.path() / "weir.yaml";
  std::ofstream(file) << text;
  std::filesystem::permissions(file, std::filesystem::perms(0644));  // for whoever weird is there
}

Cluster::Cluster(ClusterSettings settings)
    : recorder(settings.behaviour),
      config_(config(settings, recorder.port())),
      project(files(settings), environment(settings, config_.path())),
      etcd(up(project, settings.services)) {
  etcd.wait_until_healthy();
  look_around();
  wait_until_ready();
}

void Cluster::look_around() {
  replicas_ = project.containers("weird");
  addresses_.clear();
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    addresses_.push_back(replicas_[i].address("clients"));
    const std::string& address = addresses_.back();
    doors.set(door(i + 1), address.empty() ? "" : "http://" + address + ":4040");
  }
  for (const Container& balancer : project.containers("balancer")) {
    doors.set("balancer", "http://" + balancer.address("clients") + ":4040");
  }
}

std::vector<std::string> Cluster::all_doors() const {
  std::vector<std::string> all;
  for (std::size_t i = 1; i <= replicas(); ++i) all.push_back(door(i));
  return all;
}

std::string Cluster::replica_behind(const std::string& door) const {
  return replicas_.at(std::stoul(door.substr(1)) - 1).id().substr(0, 12) + "-1";
}

void Cluster::scale(std::size_t replicas) {
  project.compose({"up", "-d", "--no-build", "--no-deps", "--no-recreate", "--scale",
                   "weird=" + std::to_string(replicas), "weird"});
  look_around();
}

std::string Cluster::admin(std::size_t number) const {
  return "http://" + addresses_.at(number - 1) + ":9464";
}

std::string Cluster::not_ready(std::size_t number) const {
  const Page page = get(admin(number) + "/readyz");
  if (page.status == 200) return "";
  return page.body.empty() ? "no answer" : page.body;
}

double Cluster::metric(std::size_t number, const std::string& name,
                       const std::vector<std::string>& labels) const {
  std::istringstream lines(get(admin(number) + "/metrics").body);
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + "{") &&
        std::all_of(labels.begin(), labels.end(),
                    [&](const std::string& label) { return line.find(label) != line.npos; })) {
      sum += std::stod(line.substr(line.rfind(' ')));
    }
  }
  return sum;
}

void Cluster::wait_until_ready(std::size_t number) {
  eventually(door(number) + " is ready", [&] { return not_ready(number).empty(); });
}

void Cluster::wait_until_ready() {
  for (std::size_t i = 1; i <= replicas(); ++i) wait_until_ready(i);
  for (std::size_t i = 1; i <= replicas(); ++i) {
    eventually("all know one another", [&] {
      const auto page = nlohmann::json::parse(get(admin(i) + "/v1/replicas").body, nullptr, false);
      return page.is_object() && page.at("replicas").size() == replicas();
    });
  }
}

void Cluster::wait_until_all_forward() {
  const std::set<std::string> all(addresses_.begin(), addresses_.end());
  const Instant now = std::chrono::steady_clock::now();
  eventually("every replica forwards", [&] { return recorder.peers(now) == all; });
}

void Cluster::wait_until_balanced(std::size_t replicas) {
  const std::string address = project.container("balancer").address("clients");
  const std::string expected = std::to_string(replicas) + " replicas are ready\n";
  eventually("the balancer has " + expected,
             [&] { return get("http://" + address + ":8405/replicas").body == expected; });
}

}  // namespace weir::test
