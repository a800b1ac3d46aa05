#pragma once

// More demand than a limit has units, on cpprestsdk: so many clients that each ask again as soon as
// they were answered.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/socket.h"

namespace weir::test {

// Whom clients ask, by names of the test's. A door may go, and come back at another address.
class Doors {
 public:
  void set(const std::string& door, const std::string& url);  // empty: shut
  std::string url(const std::string& door) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> urls_;  // guarded by mutex_
};

struct Answered {
  std::string path, door;
  int status = 0;           // 0: the connection ended before the answer
  std::string reason = "";  // of a problem
  Instant asked{}, at{};
};

class Load {
 public:
  // `clients` at each of `doors` ask for `path`, each time with another query, which begins with
  // the door's name.
  struct Stream {
    std::string path;
    int clients = 1;
    std::vector<std::string> doors;
    Span pause{0};               // before a client that was served asks again
    std::string method = "GET";  // anything else with a body
  };
  Load(const Doors& doors, std::vector<Stream> streams);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Those who wait for an answer go away.
  void stop();
  // Of one path, or of all if it is empty.
  std::vector<Answered> answers(const std::string& path = "", Instant since = {}) const;
  // All that were no 200, by status and reason: empty if there were none.
  std::string failures(const std::string& path, Instant since = {}) const;

 private:
  struct Stopping;
  void run(const Stream& stream, const std::string& door);

  const Doors& doors_;
  const std::vector<Stream> streams_;
  std::unique_ptr<Stopping> stopping_;
  mutable std::mutex mutex_;
  std::vector<Answered> answers_;  // guarded by mutex_
  std::vector<std::thread> clients_;
};

// One request with its answer.
struct Page {
  int status = 0;  // 0: nobody answered
  std::string body;
};
Page get(const std::string& url, Span timeout = 2s);

}  // namespace weir::test
