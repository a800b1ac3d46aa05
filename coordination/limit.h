#pragma once

// What a rule allows: so many units per window over all replicas, and what happens to a request
// that finds none free. Plain values, read from the configuration and constant from then on.

#include <chrono>
#include <cstdint>
#include <optional>

namespace weir {

enum class Mode { started, sliding, in_flight, until_done };
enum class Queue { fifo, fair };

// Whether its units are counted in windows that begin for all replicas at once.
inline bool aligned(Mode mode) { return mode == Mode::started || mode == Mode::until_done; }

struct Limit {
  std::int64_t units = 100;         // 1 … 1,000,000,000
  std::chrono::seconds window{60};  // 1 s … 24 h; without meaning for in_flight
  Mode mode = Mode::started;
  std::optional<std::chrono::milliseconds> wait;  // nothing: as long as the client stays
  Queue queue = Queue::fifo;
  bool shadow = false;     // count and report, hold nobody back
  bool unlimited = false;  // pass uncounted
};

// One replica's part of a limit that is shared out: the first ones get what the division leaves.
inline std::int64_t share_of(std::int64_t units, int replicas, int index) {
  return units / replicas + (index < units % replicas ? 1 : 0);
}

}  // namespace weir
