#include "daemon/system.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>

namespace weir {

SteadyTime SystemClock::steady_now() const { return std::chrono::steady_clock::now(); }

WallTime SystemClock::wall_now() const { return std::chrono::system_clock::now(); }

SystemRandom::SystemRandom() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  engine_.seed(seed);
}

std::uint64_t SystemRandom::next() { return engine_(); }

std::size_t raise_open_files() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlimit raised{files.rlim_max, files.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : files.rlim_cur;
}

std::string default_replica_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return std::string{host.data()} + "-" + std::to_string(::getpid());
}

}  // namespace weir
