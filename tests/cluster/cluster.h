#pragma once

// Replicas of the real `weird`, called r1, r2 and so on, before one upstream and with a real etcd.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/load.h"
#include "tests/cluster/recording_upstream.h"
#include "tests/support/etcd_cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/weird_process.h"

namespace weir::test {

struct ClusterSettings {
  std::string default_rule = "{limit: 100, window: 2s}";
  std::string rules = "";  // the list under `rules:`, one line each
  std::string on_store_failure = "reject";
  std::string timeout = "1s";
  std::string etcd_fields = "";  // further fields of coordination.etcd, with a comma before each
  EtcdSettings etcd{};
  EtcdCluster::Begin begin = EtcdCluster::Begin::started;
  RecordingUpstream::Slow slow{};
  std::size_t replicas = 3;
  std::string rest = "";  // further top-level fields
  // What is done to etcd before the first replica starts.
  std::function<void(EtcdCluster&)> prepare{};
};

// A claim as `etcdctl get --prefix` shows it.
struct SeenClaim {
  std::string key, rule, resource /* decoded */, window, replica;
  int units = 0;
  std::string at;
};

class Cluster {
 public:
  explicit Cluster(ClusterSettings settings = {});

  WeirdProcess& operator[](std::size_t replica) { return *replicas_.at(replica); }
  // Starts it, again if it was there before; its door opens.
  void start(std::size_t replica);
  void kill(std::size_t replica);  // SIGKILL
  void stop(std::size_t replica);  // as an operator would
  // One more, with a name of the test's choice. No door.
  std::unique_ptr<WeirdProcess> another(const std::string& name) const;
  void wait_until_ready(std::size_t replica);
  void wait_until_ready();

  std::vector<SeenClaim> claims(const std::string& below = "");

 private:
  Config config(const std::string& name) const;
  const ClusterSettings settings_;

 public:
  EtcdCluster etcd;
  RecordingUpstream upstream;
  Doors doors;

 private:
  std::vector<std::unique_ptr<WeirdProcess>> replicas_;
};

// The body of /readyz if it is 503; empty: ready.
std::string not_ready(const WeirdProcess& weird);

std::string percent_decoded(std::string_view text);

}  // namespace weir::test
