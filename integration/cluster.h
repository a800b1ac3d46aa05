#pragma once

// Replicas of Weir and three members of etcd in containers, before an upstream that records. The
// replicas' doors are called r1, r2 and so on; `balancer` is the load balancer's, where there is
// one.

#include <string>
#include <vector>

#include "integration/etcd.h"
#include "integration/load.h"
#include "integration/recorder.h"
#include "tests/support/etcd_cluster.h"

namespace weir::test {

struct ClusterSettings {
  std::string rules;  // the list under `rules:`, one line each
  std::string tenant = "client_ip";
  std::string upstream_fields = "";  // further ones of the upstream, one line each
  Recorder::Behaviour behaviour = [](const std::string&) { return Recorder::Reply{}; };
  std::vector<std::string> files{};                // compose files beside integration/compose.yml
  std::map<std::string, std::string> variables{};  // what those refer to
  std::vector<std::vector<std::string>> services{{"etcd1", "etcd2", "etcd3"}, {"weird"}};
};

// A folder with a weir.yaml, to be mounted.
class ConfigFolder {
 public:
  explicit ConfigFolder(const std::string& text);
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

class Cluster {
 public:
  explicit Cluster(ClusterSettings settings);

  Container& replica(std::size_t number) { return replicas_.at(number - 1); }
  std::size_t replicas() const { return replicas_.size(); }
  static std::string door(std::size_t number) { return "r" + std::to_string(number); }
  std::vector<std::string> all_doors() const;
  // What it calls itself in etcd: its container's name for itself, and its process there.
  std::string replica_behind(const std::string& door) const;
  // After replicas came or went, or were started again: addresses change.
  void look_around();
  void scale(std::size_t replicas);

  // Why it is not; empty: it is.
  std::string not_ready(std::size_t number) const;
  // Of those of its metrics that have this name and these labels, as `rule="started"`, the sum.
  double metric(std::size_t number, const std::string& name,
                const std::vector<std::string>& labels) const;
  void wait_until_ready(std::size_t number);
  // All, and all know one another.
  void wait_until_ready();
  // So many are what the balancer sends requests to.
  void wait_until_balanced(std::size_t replicas);
  // Requests reach the recorder from every replica, and from nobody else.
  void wait_until_all_forward();

  Recorder recorder;

 private:
  const ConfigFolder config_;

 public:
  Project project;
  Etcd etcd;
  Doors doors;

 private:
  std::string admin(std::size_t number) const;

  std::vector<Container> replicas_;
  std::vector<std::string> addresses_;
};

}  // namespace weir::test
