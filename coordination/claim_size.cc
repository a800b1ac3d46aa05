#include "coordination/claim_size.h"

#include <algorithm>
#include <cmath>

namespace weir {

std::int64_t claim_quantum(std::int64_t limit) { return (limit + kMaxClaims - 1) / kMaxClaims; }

std::int64_t low_water(const ClaimFacts& facts) {
  const auto ahead = std::llround(facts.rate * 2 * facts.txn_time.count());
  // A resource that is asked for every second or so, and more, is in steady use: with many units to
  // a claim the next one is worth having before it is needed.
  if (ahead == 0 && (facts.rate < 1 || claim_quantum(facts.limit) == 1)) return -1;
  return ahead;
}

std::int64_t claim_size(const ClaimFacts& facts) {
  const std::int64_t left = facts.limit - facts.used;
  if (left <= 0) return 0;
  const std::int64_t fair =
      std::max<std::int64_t>({1, left / facts.live_replicas, facts.share_left});
  // Who has used so much will use an eighth more, whatever the rate says: claims grow with use, so
  // that a large limit never comes to a thousand of them.
  const std::int64_t until_end = std::max<std::int64_t>(
      std::llround(std::min(1e12, facts.rate * facts.window_left.count())), facts.held / 8);

  const std::int64_t needed = std::max<std::int64_t>(0, facts.waiting - facts.in_hand);
  const std::int64_t low = low_water(facts);
  std::int64_t ahead = 0;
  if (needed > 0 || facts.in_hand <= low) {
    const std::int64_t quantum = claim_quantum(facts.limit);
    ahead = std::max(low, quantum > 1 ? quantum : 0) + facts.waiting - facts.in_hand - needed;
    ahead = std::clamp<std::int64_t>(ahead, 0, std::min(fair, until_end));
  }
  std::int64_t size = std::min(needed + ahead, left);
  if (facts.contested) size = std::min(size, fair);
  return size;
}

}  // namespace weir
