#pragma once

// An upstream that does as it is told, well or badly. Each connection gets a thread that runs a
// Script; what was received and when the peer left is on record for the test. `answers.h` has
// scripts ready made.
//
//   FakeUpstream upstream(serve(answer(200, "hello")));
//   WeirdProcess weird({.servers = {upstream.url()}});
//   ...
//   EXPECT_EQ(upstream.requests().at(0).target, "/");

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/message.h"
#include "tests/support/socket.h"

namespace weir::test {

// A request as the upstream got it.
struct Received {
  int connection = 0;  // the first is 1
  std::string raw_head;
  std::string method, target, version;
  Fields fields;
  std::string body;
  bool body_complete = false;
  std::string trailers;
  Instant arrived;  // when its head was whole
};

// How and when the peer of a connection left.
struct Closing {
  Ending how;
  Instant when;
};

class FakeUpstream;

// One accepted connection as its script sees it. Used by the script's thread only.
class UpstreamConnection {
 public:
  UpstreamConnection(FakeUpstream& upstream, int number, Socket socket)
      : upstream_(upstream), number_(number), socket_(std::move(socket)) {}

  int number() const { return number_; }

  // The next request: its head, or all of it. nullopt: the peer has closed. On record at once.
  std::optional<Received> read_head();
  std::optional<Received> read_request();
  // Reads the body of the request whose head came last; false if it was cut.
  bool read_body();

  bool send(std::string_view bytes) { return socket_.send(bytes); }
  void finish_sending() { socket_.finish_sending(); }
  void close() { socket_.close(); }
  void reset() { socket_.reset(); }
  void wait(const Gate& gate);
  // Reads and drops whatever comes until the peer leaves, and puts that on record.
  void wait_for_peer_to_leave();
  Socket& socket() { return socket_; }

 private:
  friend class FakeUpstream;
  FakeUpstream& upstream_;
  int number_;
  Socket socket_;
  std::size_t last_request_ = 0;  // its place in the upstream's record
};

// When it returns, the connection is held until the peer leaves, unless the script has closed it.
using Script = std::function<void(UpstreamConnection&)>;

enum class Start { listening, refusing };

class FakeUpstream {
 public:
  explicit FakeUpstream(Script script, Start start = Start::listening, int receive_buffer = 0);
  ~FakeUpstream();  // ends every connection, whatever its script is at
  FakeUpstream(const FakeUpstream&) = delete;
  FakeUpstream& operator=(const FakeUpstream&) = delete;

  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // The port stays ours while it refuses, so nobody else can take it meanwhile.
  void listen();
  void refuse();

  std::vector<Received> requests() const;
  std::vector<std::string> targets() const;
  int connections() const;
  // Waits until there are so many, and returns all there are.
  std::vector<Received> wait_for_requests(std::size_t count) const;
  // Waits until the peer has left that connection (the first is 1).
  Closing wait_for_closing(int connection) const;

 private:
  friend class UpstreamConnection;

  void accept_connections(int listener, int stop_fd);
  void run(int number, Descriptor fd);
  std::size_t record(Received request);
  Received request(std::size_t number) const;
  void record_body(std::size_t request, Body body);
  void record_closing(int connection, Ending how);

  const Script script_;
  const int receive_buffer_;
  Descriptor reservation_;  // bound, never listening
  std::uint16_t port_;
  Gate stop_;

  std::optional<Gate> stop_accepting_;
  std::thread acceptor_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // Guarded by mutex_:
  std::vector<std::thread> threads_;
  std::vector<Received> requests_;
  std::map<int, Closing> closings_;
  int connections_ = 0;
};

// A listener whose queue is full and that accepts nobody: connecting to it takes for ever.
class FullBacklog {
 public:
  FullBacklog();
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  Descriptor listener_;
  std::uint16_t port_;
  std::vector<Descriptor> queued_;
};

}  // namespace weir::test
