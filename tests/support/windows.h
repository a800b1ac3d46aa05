#pragma once

// For tests of limits: windows are aligned to the wall clock, so tests begin with one.

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/fake_upstream.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {

// Returns when a window of that length has just begun; or is about to, `before` ahead of it.
void wait_for_window(std::chrono::seconds length = std::chrono::seconds{1}, Span before = Span{0});

// The number of the window that a moment lies in.
long window_of(Instant moment, std::chrono::seconds length = std::chrono::seconds{1});

// How many requests arrived in each window; of one target, or of all if it is empty.
std::map<long, int> arrivals_by_window(const FakeUpstream& upstream, std::string_view target = {},
                                       std::chrono::seconds length = std::chrono::seconds{1});

// A client that has asked and not read its answer.
RawClient asking(const WeirdProcess& weird, std::string_view target,
                 std::initializer_list<std::string_view> fields = {});

// Waits until exactly so many are in line.
void wait_for_line(const WeirdProcess& weird, int length);

// One client after another, each in line before the next asks.
std::vector<RawClient> lined_up(const WeirdProcess& weird, const std::vector<std::string>& targets);

}  // namespace weir::test
