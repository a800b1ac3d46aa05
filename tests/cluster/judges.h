#pragma once

// What an upstream's record says about a limit. A request is recorded a little after it was
// forwarded: how little is not Weir's alone, since the record is made by a thread of the test on
// the same busy machine. So an arrival just behind a window's start may belong to the window
// before, if that has room for it; and no other leave is given.

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tests/cluster/arrival.h"

namespace weir::test {

// From the decision to forward to the upstream's record of it, on a busy machine.
extern const Span on_its_way;

using WindowCounts = std::map<long, int>;  // by the window's number, from the epoch

// Arrivals by aligned window; those on their way at its start are counted for the window before
// only as far as their own has no room.
WindowCounts by_window(const std::vector<Arrival>& arrivals, int limit,
                       std::chrono::seconds length);

// No window over its limit; all there are of one resource.
void expect_started_kept(const std::vector<Arrival>& arrivals, int limit,
                         std::chrono::seconds length);
// No interval of the window's length over it.
void expect_sliding_kept(const std::vector<Arrival>& arrivals, int limit,
                         std::chrono::seconds length);
// How much of it was used: the window's length, by how long after each arrival the one came that
// had its unit next. Bursts make a count of arrivals in a given time say little.
double sliding_use(const std::vector<Arrival>& arrivals, int limit, std::chrono::seconds length);
// The most that were being served at any moment, and on average from `since` to `until`.
int most_at_once(const std::vector<Arrival>& arrivals);
double mean_at_once(const std::vector<Arrival>& arrivals, Instant since, Instant until);

std::map<std::string, int> by_replica(const std::vector<Arrival>& arrivals);
std::string shares(const std::vector<Arrival>& arrivals);
std::vector<Arrival> between(const std::vector<Arrival>& arrivals, Instant since, Instant until);

}  // namespace weir::test
