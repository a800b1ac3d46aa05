// A server's name that the name server is slow to answer for. The system's own lookup is replaced
// here, so that the test says when it ends.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string_view>

#include "proxy/http/upstream.h"
#include "tests/support/fast_clock.h"

namespace {

constexpr std::string_view kSlowName = "slow.test";

// One lookup of the slow name, as the test lets it go on.
struct SlowLookup {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  std::atomic<int> asked = 0;

  void wait() {
    std::unique_lock lock(mutex);
    ++asked;
    changed.wait(lock, [this] { return open; });
  }
  void let_go() {
    std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
  void begin_anew() {
    std::lock_guard lock(mutex);
    open = false;
    asked = 0;
  }
};
SlowLookup slow_lookup;

}  // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  using Lookup = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto system_lookup = reinterpret_cast<Lookup>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool slow = node && node == kSlowName;
  if (slow) slow_lookup.wait();
  return system_lookup(slow ? "127.0.0.1" : node, service, hints, result);
}

namespace weir::http {
namespace {

class StillClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return {}; }
  WallTime wall_now() const override { return {}; }
};

struct Waiter {
  std::shared_ptr<Stream> connecting;
  bool over = false;
};

Task<void> connect(std::shared_ptr<Upstream> upstream, Waiter& waiter) {
  const Outbound outbound = co_await upstream->connect(waiter.connecting);
  EXPECT_FALSE(outbound);
  waiter.over = true;
}

TEST(Resolve, ARequestThatIsCancelledDoesNotWaitForTheNameServer) {
  slow_lookup.begin_anew();
  const StillClock clock;
  Loop loop(clock);
  UpstreamOptions options;
  options.servers = {{std::string(kSlowName), 1}};
  const auto upstream = std::make_shared<Upstream>(loop, options);
  Waiter cancelled, patient;
  spawn(connect(upstream, cancelled), [] {});
  spawn(connect(upstream, patient), [] {});
  while (slow_lookup.asked == 0) loop.context().run_one();
  cancelled.connecting->abort();
  while (!cancelled.over) loop.context().run_one();
  EXPECT_FALSE(patient.over);
  slow_lookup.let_go();
  while (!patient.over) loop.context().run_one();  // refused: nobody listens on that port
  EXPECT_EQ(slow_lookup.asked, 1) << "one lookup is enough for both";
}

TEST(Resolve, ARequestWaitsForTheNameServerNoLongerThanForAConnection) {
  slow_lookup.begin_anew();
  test::FastClock clock;
  Loop loop(clock);
  UpstreamOptions options;
  options.servers = {{std::string(kSlowName), 1}};
  options.connect_timeout = std::chrono::seconds{3};
  const auto upstream = std::make_shared<Upstream>(loop, options);
  Waiter waiter;
  spawn(connect(upstream, waiter), [] {});
  const SteadyTime long_after = clock.steady_now() + std::chrono::seconds{30};
  while (!waiter.over && clock.steady_now() < long_after) loop.context().run_one();
  EXPECT_TRUE(waiter.over);
  clock.stop();
  Waiter next;
  spawn(connect(upstream, next), [] {});
  EXPECT_FALSE(next.over);
  slow_lookup.let_go();
  while (!next.over) loop.context().run_one();
}

}  // namespace
}  // namespace weir::http
