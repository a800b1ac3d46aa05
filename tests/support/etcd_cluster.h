#pragma once

// A real etcd on free ports of loopback, with its data in a folder of its own; gone, folder and
// all, when the test is. Calls block, and throw if etcd does not do what it is told.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/child_process.h"

namespace weir::test {

struct EtcdSettings {
  int members = 1;
  std::vector<std::string> flags{};  // of every member
  std::string scheme = "http";       // for clients
  std::vector<std::string> etcdctl_flags{};
};

// A folder under /tmp that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class EtcdCluster {
 public:
  enum class Begin { started, not_started };
  explicit EtcdCluster(EtcdSettings settings = {}, Begin begin = Begin::started);

  // The last one is waited for until the cluster is healthy.
  void start();
  void start(std::size_t member);
  void kill(std::size_t member);    // SIGKILL
  void freeze(std::size_t member);  // SIGSTOP
  void thaw(std::size_t member);    // SIGCONT
  void wipe(std::size_t member);    // its data; it must not run
  void wait_until_healthy();        // all members

  std::vector<std::string> endpoints() const;
  std::string endpoint(std::size_t member) const;
  // Of the member that leads.
  std::size_t leader();
  // Fails the caller by throwing, unless etcdctl says that all went well.
  std::string etcdctl(std::vector<std::string> arguments);

 private:
  struct Member {
    std::uint16_t client_port, peer_port;
    std::unique_ptr<ChildProcess> process;
  };
  std::string name_of(std::size_t member) const { return "m" + std::to_string(member); }
  std::string data_of(std::size_t member) const;
  Ran try_etcdctl(std::vector<std::string> arguments, const std::string& endpoints);

  const EtcdSettings settings_;
  TemporaryFolder folder_;
  std::vector<Member> members_;
};

}  // namespace weir::test
