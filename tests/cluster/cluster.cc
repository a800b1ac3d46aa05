#include "tests/cluster/cluster.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace weir::test {

namespace {

// Thousands of connections, here and in the replicas, which inherit it.
void allow_many_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Cluster::Cluster(ClusterSettings settings)
    : settings_(std::move(settings)),
      etcd(settings_.etcd, settings_.begin),
      upstream(settings_.slow),
      doors(settings_.replicas),
      replicas_(settings_.replicas) {
  allow_many_files();
  if (settings_.prepare) settings_.prepare(etcd);
  for (std::size_t i = 0; i < replicas_.size(); ++i) start(i);
  if (settings_.begin == EtcdCluster::Begin::started) wait_until_ready();
}

Config Cluster::config(const std::string& name) const {
  std::string endpoints;
  for (const std::string& endpoint : etcd.endpoints()) {
    endpoints += (endpoints.empty() ? "" : ", ") + endpoint;
  }
  std::string rest = "replica: " + name + "\n";
  rest += "coordination: {kind: etcd, on_store_failure: " + settings_.on_store_failure +
          ", etcd: {endpoints: [" + endpoints + "], timeout: " + settings_.timeout +
          settings_.etcd_fields + "}}\n";
  rest += settings_.rest;
  if (!settings_.rules.empty()) rest += "rules:\n" + settings_.rules;
  return {.servers = {upstream.url()}, .rest = rest, .default_rule = settings_.default_rule};
}

std::unique_ptr<WeirdProcess> Cluster::another(const std::string& name) const {
  return std::make_unique<WeirdProcess>(config(name));
}

void Cluster::start(std::size_t replica) {
  doors.shut(replica);
  replicas_[replica].reset();
  replicas_[replica] = another("r" + std::to_string(replica + 1));
  doors.set(replica, replicas_[replica]->port());
}

void Cluster::kill(std::size_t replica) {
  replicas_[replica]->kill();
  doors.shut(replica);
}

void Cluster::stop(std::size_t replica) {
  doors.shut(replica);
  replicas_[replica].reset();
}

void Cluster::wait_until_ready(std::size_t replica) {
  eventually("r" + std::to_string(replica + 1) + " is ready",
             [&] { return not_ready(*replicas_[replica]).empty(); });
}

void Cluster::wait_until_ready() {
  for (std::size_t i = 0; i < replicas_.size(); ++i) wait_until_ready(i);
  // Ready is each for itself: shares and fair claims need them to know one another.
  for (const auto& replica : replicas_) {
    eventually("all know one another", [&] {
      const auto page = nlohmann::json::parse(replica->admin("/v1/replicas").body);
      return page.at("replicas").size() == replicas_.size();
    });
  }
}

std::vector<SeenClaim> Cluster::claims(const std::string& below) {
  const std::string prefix = "/weir/v1/claims/";
  std::istringstream lines(etcd.etcdctl({"get", "--prefix", prefix + below}));
  std::vector<SeenClaim> claims;
  std::string key, value;
  while (std::getline(lines, key) && std::getline(lines, value)) {
    const std::string rest = key.substr(prefix.size());
    const auto colon = rest.find(':'), at = rest.find('@'), slash = rest.rfind('/'),
               dash = rest.rfind('-');
    const auto told = nlohmann::json::parse(value);
    claims.push_back({.key = key,
                      .rule = rest.substr(0, colon),
                      .resource = percent_decoded(rest.substr(colon + 1, at - colon - 1)),
                      .window = rest.substr(at + 1, slash - at - 1),
                      .replica = percent_decoded(rest.substr(slash + 1, dash - slash - 1)),
                      .units = told.at("units").get<int>(),
                      .at = told.at("at").get<std::string>()});
  }
  return claims;
}

std::string not_ready(const WeirdProcess& weird) {
  const Answer answer = weird.admin("/readyz");
  return answer.status == 200 ? "" : answer.body;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return decoded;
}

}  // namespace weir::test
