#pragma once

// For tests of limits.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/fake_upstream.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"
#include "tests/support/window_time.h"

namespace weir::test {

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
