#pragma once

// What etcd holds, and ever held, of a rule's claims, as a judge of what was forwarded. All rules
// of these tests have windows of `claims_window`.

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "integration/etcd.h"
#include "tests/cluster/arrival.h"

namespace weir::test {

inline constexpr std::chrono::seconds claims_window{2};

// By etcd's history: of no window were more units claimed at any revision than `limit`, and nothing
// was forwarded by the end of a window that had not been claimed for it or one before.
void expect_claims_kept(const Etcd& etcd, const std::string& rule, int limit,
                        const std::vector<Arrival>& forwarded);
// The first half of that, where clocks differ, so that nobody can say which window an arrival is
// of. By window, the units.
MostClaimed expect_no_window_overdrawn(const Etcd& etcd, const std::string& rule, int limit);

// The replicas that have claims of windows that began after then.
std::set<std::string> claimants_since(const Etcd& etcd, const std::string& rule, Instant since);

}  // namespace weir::test
