#pragma once

// More demand than a limit has units: so many clients that each ask again as soon as they were
// answered, over connections that are kept. One thread serves all of them.

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/socket.h"

namespace weir::test {

// Whom clients ask. It may go and come back at another port.
class Doors {
 public:
  explicit Doors(std::size_t count) : ports_(count) {}
  void set(std::size_t door, std::uint16_t port) { ports_[door] = port; }
  void shut(std::size_t door) { ports_[door] = 0; }
  std::uint16_t port(std::size_t door) const { return ports_[door]; }
  std::size_t size() const { return ports_.size(); }

 private:
  std::vector<std::atomic<std::uint16_t>> ports_;
};

struct Answered {
  std::size_t door;
  int status;  // 0: the connection ended before the answer
  Instant asked, at;
  std::string reason;  // of a problem
  bool retry_after;
};

class Load {
 public:
  // `clients` at each of `doors` ask for `path`. With `distinct_paths` above 1 they go round
  // `path`/0, `path`/1 and so on.
  struct Stream {
    std::string path;
    int clients = 8;
    std::vector<std::size_t> doors{0, 1, 2};
    int distinct_paths = 1;
    Span pause{0};   // before a client that was served asks again
    Span leaves{0};  // a client that was not answered by then, or before, goes away and comes again
  };
  Load(const Doors& doors, std::vector<Stream> streams);
  ~Load() { stop(); }

  // Those who wait for an answer go away.
  void stop();
  std::vector<Answered> answers() const;
  // How many answers of that status there were since.
  int count(int status, Instant since = {}) const;
  int count_from(std::size_t door, int status, Instant since = {}) const;

 private:
  struct Client {
    const Stream* stream;
    std::size_t door;
    Descriptor fd;
    std::uint16_t port = 0;
    std::string received;
    Instant asked{};
    bool waiting = false;
    Instant leaves_at = Instant::max();
    std::size_t number = 0;
  };
  void run();
  void ask(std::size_t client);
  void read(std::size_t client);
  bool take_answer(std::size_t client);
  void again(std::size_t client, Span in);
  void leave(std::size_t client);
  void hang_up(Client& client);
  void note(Client& client, int status, std::string reason = "", bool retry_after = false);

  const Doors& doors_;
  const std::vector<Stream> streams_;
  Gate stop_;
  Descriptor epoll_;
  // Owned by the thread:
  std::vector<Client> clients_;
  std::multimap<Instant, std::size_t> due_;       // who asks next
  std::multimap<Instant, std::size_t> patience_;  // whose ends
  std::minstd_rand random_{11};
  std::size_t next_path_ = 0;

  mutable std::mutex mutex_;
  std::vector<Answered> answers_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace weir::test
