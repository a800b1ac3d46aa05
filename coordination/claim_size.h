#pragma once

// How many units to claim, and when to claim before the last is spent. Pure.

#include <chrono>
#include <cstdint>

namespace weir {

struct ClaimFacts {
  std::int64_t limit = 0, used = 0;       // over all replicas, by the last answer
  std::int64_t waiting = 0, in_hand = 0;  // here
  std::int64_t held = 0;                  // claimed here, spent or not
  double rate = 0;                        // units taken here per second, lately
  std::chrono::duration<double> txn_time{0};
  std::chrono::duration<double> window_left{1e9};
  int live_replicas = 1;
  std::int64_t share_left = 0;  // of this replica's fair share of the limit
  bool contested = false;       // other replicas want some too, or may
};

// Up to this limit every unit is a claim of its own, which a person can count; above it a claim has
// as many units as it takes to have no more claims than this in a window.
inline constexpr std::int64_t kMaxClaims = 128;

// Units in one claim when a resource is in steady use.
std::int64_t claim_quantum(std::int64_t limit);

// The number of units in hand at which to claim more: what is spent while two transactions last.
// Below 0: only when somebody waits.
std::int64_t low_water(const ClaimFacts& facts);

// What the line needs, and ahead of it what the recent rate will; never more than is left, nor,
// where others claim too, than what is left of a fair share of the limit, and behind that a fair
// share of what is left (but at least 1). 0: nothing is needed, or left.
std::int64_t claim_size(const ClaimFacts& facts);

}  // namespace weir
