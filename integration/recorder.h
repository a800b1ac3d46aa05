#pragma once

// The upstream that judges a cluster, on cpprestsdk. It runs in the test's process, on the host: no
// fault that is put upon containers cuts it off, and its record has one clock. Nobody else's
// numbers are believed.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/cluster/arrival.h"

namespace weir::test {

class Recorder {
 public:
  struct Reply {
    int status = 200;
    Span after{0};
  };
  // What a request is answered with, by its path; called by several threads.
  using Behaviour = std::function<Reply(const std::string& path)>;

  explicit Recorder(Behaviour behaviour);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // On every interface of the host.
  std::uint16_t port() const { return port_; }
  // In order of arrival; of one path, or all if it is empty.
  std::vector<Arrival> arrivals(const std::string& path = "") const;
  std::size_t count(const std::string& path = "") const;
  // Everything that arrived has been answered. Clients that leave are not noticed before.
  bool idle() const;
  // The addresses that requests came from since then.
  std::set<std::string> peers(Instant since) const;
  // How many arrivals were of a request that had arrived before.
  int repeated(const std::string& path) const;

 private:
  struct Listener;
  std::size_t note(const std::string& path, const std::string& query, const std::string& peer);
  void ended(std::size_t arrival);

  const Behaviour behaviour_;
  std::uint16_t port_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::vector<Arrival> arrivals_;
  std::vector<std::string> peers_;                              // of each arrival
  std::map<std::string, std::map<std::string, int>> requests_;  // how often, by path and query

  std::unique_ptr<Listener> listener_;
};

}  // namespace weir::test
