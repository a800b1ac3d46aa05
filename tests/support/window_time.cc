#include "tests/support/window_time.h"

#include <ctime>
#include <stdexcept>
#include <thread>

namespace weir::test {

using std::chrono::steady_clock;
using std::chrono::system_clock;

void wait_for_window(std::chrono::seconds length, Span before) {
  const auto since = system_clock::now().time_since_epoch() % length;
  auto left = std::chrono::duration_cast<steady_clock::duration>(length - since) - before;
  if (left.count() < 0) left += length;
  // The kernel may let us sleep a little less by the other clock.
  std::this_thread::sleep_for(left + (before.count() == 0 ? 2ms : 0ms));
}

long window_of(Instant moment, std::chrono::seconds length) {
  const auto ago = steady_clock::now() - moment;
  const auto wall = system_clock::now() - std::chrono::duration_cast<system_clock::duration>(ago);
  return wall.time_since_epoch() / length;
}

long window_that_begins(const std::string& utc, std::chrono::seconds length) {
  std::tm fields{};
  const char* end = ::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &fields);
  if (end == nullptr || *end != '\0') throw std::runtime_error("not a window's start: " + utc);
  return ::timegm(&fields) / length.count();
}

}  // namespace weir::test
