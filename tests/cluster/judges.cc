#include "tests/cluster/judges.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/sanitized.h"

namespace weir::test {

using std::chrono::system_clock;

const Span on_its_way = sanitized ? 500ms : 100ms;

WindowCounts by_window(const std::vector<Arrival>& arrivals, int limit,
                       std::chrono::seconds length) {
  WindowCounts counts, early;
  for (const Arrival& arrival : arrivals) {
    const auto since_epoch = arrival.wall.time_since_epoch();
    const long window = since_epoch / length;
    ++counts[window];
    if (since_epoch % length < on_its_way) ++early[window];
  }
  // From the last to the first: each hands on what it must, and no more than it may.
  for (auto window = counts.rbegin(); window != counts.rend(); ++window) {
    const int over = std::min(window->second - limit, early[window->first]);
    if (over <= 0) continue;
    window->second -= over;
    // A window before it with no arrivals at all is one that nothing can have come late from, or
    // one whose all have: then it is looked at next.
    counts[window->first - 1] += over;
  }
  return counts;
}

void expect_started_kept(const std::vector<Arrival>& arrivals, int limit,
                         std::chrono::seconds length) {
  for (const auto& [window, count] : by_window(arrivals, limit, length)) {
    std::string by_whom;
    for (const Arrival& arrival : arrivals) {
      const auto since = arrival.wall.time_since_epoch() - window * length;
      if (count <= limit || since < -length || since >= 2 * length) continue;
      by_whom += arrival.replica + "+" +
                 std::to_string(std::chrono::duration_cast<Span>(since).count()) + " ";
    }
    EXPECT_LE(count, limit) << "in window " << window << " of " << length.count()
                            << " s; who came when, in ms from its start: " << by_whom;
  }
}

void expect_sliding_kept(const std::vector<Arrival>& arrivals, int limit,
                         std::chrono::seconds length) {
  const auto count = static_cast<std::size_t>(limit);
  auto shortest = Instant::duration::max();
  for (std::size_t i = count; i < arrivals.size(); ++i) {
    shortest = std::min(shortest, arrivals[i].at - arrivals[i - count].at);
  }
  // Only the first of them can have come late enough to matter.
  EXPECT_GE(std::chrono::duration<double>(shortest).count(),
            std::chrono::duration<double>(length - on_its_way).count())
      << limit + 1 << " arrived within that";
}

double sliding_use(const std::vector<Arrival>& arrivals, int limit, std::chrono::seconds length) {
  const auto count = static_cast<std::size_t>(limit);
  if (arrivals.size() <= count) return 0;
  std::chrono::duration<double> sum{0};
  for (std::size_t i = count; i < arrivals.size(); ++i) {
    sum += arrivals[i].at - arrivals[i - count].at;
  }
  return std::chrono::duration<double>(length) * static_cast<double>(arrivals.size() - count) / sum;
}

int most_at_once(const std::vector<Arrival>& arrivals) {
  std::vector<std::pair<Instant, int>> steps;
  for (const Arrival& arrival : arrivals) {
    steps.emplace_back(arrival.at, 1);
    if (arrival.ended) steps.emplace_back(*arrival.ended, -1);
  }
  std::sort(steps.begin(), steps.end());
  int now = 0, most = 0;
  for (const auto& [at, step] : steps) most = std::max(most, now += step);
  return most;
}

double mean_at_once(const std::vector<Arrival>& arrivals, Instant since, Instant until) {
  Instant::duration served{};
  for (const Arrival& arrival : arrivals) {
    const Instant from = std::max(arrival.at, since);
    const Instant to = std::min(arrival.ended.value_or(until), until);
    if (to > from) served += to - from;
  }
  return std::chrono::duration<double>(served) / std::chrono::duration<double>(until - since);
}

std::map<std::string, int> by_replica(const std::vector<Arrival>& arrivals) {
  std::map<std::string, int> counts;
  for (const Arrival& arrival : arrivals) ++counts[arrival.replica];
  return counts;
}

std::string shares(const std::vector<Arrival>& arrivals) {
  std::string text;
  for (const auto& [replica, count] : by_replica(arrivals)) {
    text += " " + replica + " " +
            std::to_string(static_cast<double>(count) * 100 /
                           static_cast<double>(std::max<std::size_t>(1, arrivals.size())))
                .substr(0, 4) +
            "%";
  }
  return text;
}

std::vector<Arrival> between(const std::vector<Arrival>& arrivals, Instant since, Instant until) {
  std::vector<Arrival> some;
  for (const Arrival& arrival : arrivals) {
    if (arrival.at >= since && arrival.at < until) some.push_back(arrival);
  }
  return some;
}

}  // namespace weir::test
