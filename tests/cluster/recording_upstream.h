#pragma once

// The upstream that judges a cluster: answers thousands of GETs a second on one thread and keeps a
// record of every one, taken when its last byte was read. Nobody else's numbers are believed.

#include <map>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/arrival.h"

namespace weir::test {

class RecordingUpstream {
 public:
  // Requests below this path are answered only after so long, and up to `spread` more, so that they
  // do not all end together; all others at once.
  struct Slow {
    std::string path = "/slow";
    Span takes{0};
    Span spread{0};
  };
  explicit RecordingUpstream(Slow slow);
  RecordingUpstream() : RecordingUpstream(Slow{}) {}
  ~RecordingUpstream();
  RecordingUpstream(const RecordingUpstream&) = delete;
  RecordingUpstream& operator=(const RecordingUpstream&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // In order of arrival; of one path, or all if it is empty.
  std::vector<Arrival> arrivals(const std::string& path = "") const;
  std::size_t count(const std::string& path = "") const;

 private:
  struct Connection {
    Descriptor fd;
    std::string received;
    std::optional<std::size_t> serving;  // its place in the record
  };
  struct Answering {
    Instant at;
    int fd;
    std::size_t arrival;
    friend bool operator>(const Answering& a, const Answering& b) { return a.at > b.at; }
  };

  void run();
  void accept_all();
  void read(int fd);
  void take_requests(int fd, Connection& connection);
  void answer(int fd, Connection& connection);
  void answer_due();
  void drop(int fd);

  const Slow slow_;
  Descriptor listener_;
  std::uint16_t port_;
  Gate stop_;
  Descriptor epoll_;
  // Owned by the thread:
  std::map<int, Connection> connections_;
  std::priority_queue<Answering, std::vector<Answering>, std::greater<>> due_;

  mutable std::mutex mutex_;
  std::vector<Arrival> arrivals_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace weir::test
