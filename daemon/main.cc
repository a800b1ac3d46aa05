// weird: the daemon.

#include <cstdlib>
#include <iostream>

#include "daemon/daemon.h"
#include "daemon/flags.h"
#include "daemon/system.h"

namespace {

constexpr int kStopped = 0;
constexpr int kBadConfiguration = 1;
constexpr int kCannotStart = 2;

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>{value} : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  const weir::Flags flags = weir::parse_flags({argv + 1, argv + argc}, environment);
  if (flags.answer) {
    std::cout << *flags.answer;
    return kStopped;
  }
  weir::Loaded loaded = weir::load_config(flags.sources);
  loaded.errors.insert(loaded.errors.begin(), flags.errors.begin(), flags.errors.end());
  if (!loaded.errors.empty()) {
    for (const std::string& error : loaded.errors) std::cerr << error << "\n";
    return kBadConfiguration;
  }
  if (flags.check) {
    std::cout << "the configuration is good\n";
    return kStopped;
  }
  try {
    const weir::SystemClock clock;
    weir::Log log;
    log.configure(loaded.config->log);
    weir::Daemon(clock, log, flags.sources, std::move(loaded)).run();
    return kStopped;
  } catch (const std::exception& error) {
    std::cerr << "weird: " << error.what() << "\n";
    return kCannotStart;
  }
}
