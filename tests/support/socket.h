#pragma once

// A TCP socket on loopback, as tests want one: calls block, every wait has a deadline, and how the
// peer left (FIN or RST) is remembered. A wait that runs out throws, so a bug in what is tested
// shows as a failed test and never as a hang. One thread uses a Socket at a time.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weir::test {

using namespace std::chrono_literals;
using Instant = std::chrono::steady_clock::time_point;
using Span = std::chrono::milliseconds;

// How long a test waits for what must happen. Generous, because sanitizers and a busy machine slow
// everything down and nobody waits this long when all is well.
inline constexpr Span patience = 30s;

// How the peer left the connection.
enum class Ending { open, fin, reset };
std::ostream& operator<<(std::ostream& out, Ending ending);

struct TimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A wait was given up because its owner is being torn down (see `wake_fd`).
struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("stopped") {}
};

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  void close();

 private:
  int fd_;
};

// Closed at first; once opened it stays open. Threads wait for each other's progress with it.
class Gate {
 public:
  Gate();
  void open();
  void wait(Span timeout = patience) const;
  int fd() const { return event_.get(); }

 private:
  Descriptor event_;
};

class Socket {
 public:
  // Waits end with Stopped once `wake_fd` (not owned) becomes readable.
  explicit Socket(Descriptor fd, int wake_fd = -1) : fd_(std::move(fd)), wake_fd_(wake_fd) {}

  // False: the peer went away, or took too little for `timeout`.
  bool send(std::string_view bytes, Span timeout = patience);
  // How many bytes the peer took before it took none for `pause`, or went away.
  std::size_t send_until_stuck(std::string_view bytes, Span pause);

  // Each returns early with what there was if the peer ends the connection.
  std::string read_exactly(std::size_t count, Span timeout = patience);
  std::string read_through(std::string_view mark, Span timeout = patience);
  std::string read_to_end(Span timeout = patience);
  // What has come by now or comes next; empty once the peer has ended the connection.
  std::string read_some(Span timeout = patience);

  // Reads on to the end and drops what comes; says how the peer ended it.
  Ending wait_for_end(Span timeout = patience);
  // The peer neither sends nor ends anything for so long.
  bool quiet_for(Span span);
  Ending ending() const { return ending_; }
  bool is_open() const { return fd_.get() >= 0; }  // on this side
  // When the last of what was received had come.
  Instant last_arrival() const { return last_arrival_; }
  // Received and not yet taken.
  std::string_view unread() const { return buffer_; }

  void finish_sending();  // FIN; reading goes on
  void close();           // FIN, or RST if there are unread bytes
  void reset();           // RST

 private:
  void await(short events, Instant deadline);
  bool fill(Instant deadline);
  std::string take(std::size_t count);

  Descriptor fd_;
  int wake_fd_;
  std::string buffer_;
  Instant last_arrival_{};
  Ending ending_ = Ending::open;
};

// A socket bound to a port of 127.0.0.1 that the kernel chose (or to `port`), not listening.
Descriptor bind_loopback(std::uint16_t port = 0);
std::uint16_t port_of(const Descriptor& bound);

// Connects, or says that nobody listens there with an empty descriptor (get() < 0).
Descriptor try_connect(std::uint16_t port, int receive_buffer = 0);

}  // namespace weir::test
