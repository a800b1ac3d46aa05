#pragma once

// What is remembered of an upstream that said 429 or 503: how often in a row, when last, and before
// when it is not to be asked again. Every replica keeps its own copy and merges what others saw
// into it. Plain values.

#include <algorithm>
#include <chrono>
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "coordination/base/clock.h"

namespace weir {

struct CooldownRecord {
  int failures = 0;  // in a row; those of requests that were under way together count once
  WallTime last{};
  WallTime not_before{};
  bool operator==(const CooldownRecord&) const = default;
};

// In whatever order and however often records are merged, the same comes out: the later not_before
// holds, and two replicas that met the same trouble count it once.
inline CooldownRecord merged(const CooldownRecord& a, const CooldownRecord& b) {
  return {std::max(a.failures, b.failures), std::max(a.last, b.last),
          std::max(a.not_before, b.not_before)};
}

struct CooldownKey {
  std::string upstream;
  std::string project;  // empty: all of them
  int status = 0;       // 429 or 503
  auto operator<=>(const CooldownKey&) const = default;
};

// The records of this process, as whoever shares them with other replicas sees them. Any thread.
class CooldownMemory {
 public:
  // What happened here since the last look. A record that a success cleared: when the request that
  // succeeded was sent; failures after that are another matter.
  struct Change {
    CooldownKey key;
    std::optional<WallTime> cleared_by;
  };
  // A record, and how long beyond its not_before it is of use.
  struct Kept {
    CooldownRecord record;
    std::chrono::milliseconds beyond{0};
  };

  virtual ~CooldownMemory() = default;
  virtual std::vector<Change> take_changes() = 0;
  virtual std::optional<Kept> find(const CooldownKey& key) const = 0;
  // What another replica saw; merged into what is known.
  virtual void learn(const CooldownKey& key, const CooldownRecord& record) = 0;
  // Another replica saw a success, or the record's time is over. A change here that was not taken
  // yet outlives it.
  virtual void forget(const CooldownKey& key) = 0;
};

}  // namespace weir
