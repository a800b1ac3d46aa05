#include "tests/support/etcd_cluster.h"

#include <signal.h>
#include <stdlib.h>

#include <fstream>
#include <stdexcept>
#include <thread>

namespace weir::test {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = "/tmp/weir-test-XXXXXX";
  if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

EtcdCluster::EtcdCluster(EtcdSettings settings, Begin begin) : settings_(std::move(settings)) {
  std::vector<Descriptor> bound;  // all at once, so that no port comes twice
  for (int i = 0; i < settings_.members * 2; ++i) bound.push_back(bind_loopback());
  for (std::size_t i = 0; i < bound.size(); i += 2) {
    members_.push_back({port_of(bound[i]), port_of(bound[i + 1]), nullptr});
  }
  bound.clear();
  if (begin == Begin::started) start();
}

void EtcdCluster::start() {
  for (std::size_t i = 0; i < members_.size(); ++i) start(i);
  wait_until_healthy();
}

std::string EtcdCluster::data_of(std::size_t member) const {
  return (folder_.path() / name_of(member)).string();
}

void EtcdCluster::start(std::size_t member) {
  std::vector<std::string> peers;
  const auto peer_url = [this](std::size_t i) {
    return "http://127.0.0.1:" + std::to_string(members_[i].peer_port);
  };
  for (std::size_t i = 0; i < members_.size(); ++i) {
    peers.push_back(name_of(i) + "=" + peer_url(i));
  }
  std::vector<std::string> arguments{"--name=" + name_of(member),
                                     "--data-dir=" + data_of(member),
                                     "--listen-client-urls=" + endpoint(member),
                                     "--advertise-client-urls=" + endpoint(member),
                                     "--listen-peer-urls=" + peer_url(member),
                                     "--initial-advertise-peer-urls=" + peer_url(member),
                                     "--initial-cluster=" + joined(peers),
                                     "--initial-cluster-state=new",
                                     "--logger=zap",
                                     "--log-level=error"};
  arguments.insert(arguments.end(), settings_.flags.begin(), settings_.flags.end());
  members_[member].process =
      std::make_unique<ChildProcess>("/usr/bin/etcd", Launch{.arguments = std::move(arguments)});
}

void EtcdCluster::kill(std::size_t member) { members_[member].process.reset(); }

void EtcdCluster::freeze(std::size_t member) {
  members_[member].process->signal(SIGSTOP);
  // Its threads stop one by one.
  const std::string tasks = "/proc/" + std::to_string(members_[member].process->pid()) + "/task";
  const auto all_stopped = [&tasks] {
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      std::string stat;
      std::getline(std::ifstream(task.path() / "stat"), stat);
      const auto name_end = stat.rfind(") ");  // and then comes the state
      if (name_end == std::string::npos || stat[name_end + 2] != 'T') return false;
    }
    return true;
  };
  const Instant deadline = std::chrono::steady_clock::now() + patience;
  while (!all_stopped()) {
    if (std::chrono::steady_clock::now() > deadline) throw TimedOut("etcd did not stop");
    std::this_thread::sleep_for(1ms);
  }
}

void EtcdCluster::thaw(std::size_t member) { members_[member].process->signal(SIGCONT); }
void EtcdCluster::wipe(std::size_t member) { std::filesystem::remove_all(data_of(member)); }

void EtcdCluster::wait_until_healthy() {
  const Instant deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const Ran ran =
        try_etcdctl({"--command-timeout=1s", "endpoint", "health"}, joined(endpoints()));
    if (ran.code == 0) return;
    for (const Member& member : members_) {
      if (member.process && member.process->wait_for_exit(0ms)) {
        throw std::runtime_error("etcd ended: " + member.process->standard_error());
      }
    }
    if (std::chrono::steady_clock::now() > deadline) throw TimedOut("etcd: " + ran.error);
    std::this_thread::sleep_for(20ms);
  }
}

std::string EtcdCluster::endpoint(std::size_t member) const {
  return settings_.scheme + "://127.0.0.1:" + std::to_string(members_[member].client_port);
}

std::vector<std::string> EtcdCluster::endpoints() const {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < members_.size(); ++i) all.push_back(endpoint(i));
  return all;
}

std::size_t EtcdCluster::leader() {
  const Instant deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      // endpoint, id, version, size, is leader, …
      const Ran ran = try_etcdctl({"--command-timeout=1s", "endpoint", "status"}, endpoint(i));
      std::string_view rest = ran.output;
      for (int field = 0; field < 4; ++field) {
        const auto comma = rest.find(", ");
        rest = comma == std::string_view::npos ? "" : rest.substr(comma + 2);
      }
      if (rest.starts_with("true")) return i;
    }
  }
  throw TimedOut("no leader");
}

Ran EtcdCluster::try_etcdctl(std::vector<std::string> arguments, const std::string& endpoints) {
  arguments.insert(arguments.begin(), "--endpoints=" + endpoints);
  arguments.insert(arguments.begin(), settings_.etcdctl_flags.begin(),
                   settings_.etcdctl_flags.end());
  return run_program("/usr/bin/etcdctl", {.arguments = std::move(arguments)});
}

std::string EtcdCluster::etcdctl(std::vector<std::string> arguments) {
  Ran ran = try_etcdctl(std::move(arguments), joined(endpoints()));
  if (ran.code != 0) throw std::runtime_error("etcdctl: " + ran.error);
  return ran.output;
}

}  // namespace weir::test
