#include "integration/claims.h"

#include <gtest/gtest.h>

#include "tests/cluster/judges.h"
#include "tests/support/window_time.h"

namespace weir::test {
MostClaimed expect_no_window_overdrawn(const Etcd& etcd, const std::string& rule, int limit) {
  MostClaimed claimed = etcd.most_claimed(rule);
  EXPECT_GE(claimed.size(), 3u) << "there is nothing to judge by";
  for (const auto& [start, units] : claimed) {
    EXPECT_LE(units, limit) << "claimed in the window of " << start;
  }
  return claimed;
}

void expect_claims_kept(const Etcd& etcd, const std::string& rule, int limit,
                        const std::vector<Arrival>& forwarded) {
  WindowCounts counts;
  for (const Arrival& arrival : forwarded) {
    ++counts[arrival.wall.time_since_epoch() / claims_window];
  }
  long claimed = 0;
  for (const auto& [start, units] : expect_no_window_overdrawn(etcd, rule, limit)) {
    claimed += units;
    // Arrivals may be a little late, and so belong to an earlier window; never to a later one.
    const auto behind = counts.upper_bound(window_that_begins(start, claims_window));
    long so_far = 0;
    for (auto counted = counts.begin(); counted != behind; ++counted) so_far += counted->second;
    EXPECT_LE(so_far, claimed) << "forwarded and never claimed, by the end of window " << start;
  }
}

std::set<std::string> claimants_since(const Etcd& etcd, const std::string& rule, Instant since) {
  const long then = window_of(since, claims_window);
  std::set<std::string> claimants;
  for (const std::string& key : etcd.claims_of(rule)) {
    const std::size_t at = key.find('@'), slash = key.rfind('/');
    if (window_that_begins(key.substr(at + 1, slash - at - 1), claims_window) <= then) continue;
    claimants.insert(key.substr(slash + 1, key.rfind('-') - slash - 1));
  }
  return claimants;
}

}  // namespace weir::test
