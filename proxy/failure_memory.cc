#include "proxy/failure_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace weir {
namespace {

using std::chrono::nanoseconds;

constexpr int kStatuses[] = {503, 429};  // by place
// What no doubling needs to go beyond: 2^64 ns are five centuries.
constexpr int kMostDoublings = 64;

}  // namespace

nanoseconds cooldown_range(const CooldownOptions::Class& options, int failures) {
  const nanoseconds base = options.base, max = options.max;
  const int doublings = std::clamp(failures - 1, 0, kMostDoublings);
  const double range = std::ldexp(static_cast<double>(base.count()), doublings);
  return range < static_cast<double>(max.count()) ? nanoseconds{static_cast<std::int64_t>(range)}
                                                  : max;
}

FailureMemory::Name FailureMemory::failed(const Failure& failure, const Instant& now) {
  const CooldownOptions::Class& options = of(failure.status);
  Name name{{}, failure.status};
  if (options.scope == CooldownOptions::Scope::project) name.project = failure.project;
  Record& record = get(name, now.steady);
  nanoseconds delay = failure.retry_after;
  const bool new_failure = record.shared.failures == 0 || failure.sent > record.failed;
  if (new_failure) {
    if (record.shared.failures < std::numeric_limits<int>::max()) ++record.shared.failures;
    record.failed = now.steady;
    record.shared.last = now.wall;
    const auto range = static_cast<double>(cooldown_range(options, record.shared.failures).count());
    delay = std::max(delay, nanoseconds{static_cast<std::int64_t>(range * failure.random)});
  }
  record.until = std::max(record.until, now.steady + delay);
  record.useful_to = std::max(record.useful_to, record.until + beyond(failure.status));
  record.shared.not_before = now.wall + (record.until - now.steady);
  return name;
}

std::vector<FailureMemory::Name> FailureMemory::succeeded(std::string_view project,
                                                          SteadyTime sent) {
  std::vector<Name> cleared;
  const auto clear = [&](Records& records, std::string_view whose) {
    for (const int status : kStatuses) {
      auto& record = records[place(status)];
      if (!record || record->failed >= sent) continue;
      record.reset();
      cleared.push_back({std::string{whose}, status});
    }
  };
  clear(global_, "");
  if (const auto own = projects_.find(project); own != projects_.end()) {
    clear(own->second, project);
    if (!own->second[0] && !own->second[1]) projects_.erase(own);
  }
  return cleared;
}

std::vector<FailureMemory::Met> FailureMemory::met_by(std::string_view project, SteadyTime now) {
  std::vector<Met> met;
  const auto add = [&](Records& records, std::string_view whose) {
    for (const int status : kStatuses) {
      auto& record = records[place(status)];
      if (record && record->useless(now)) record.reset();
      if (record) met.push_back({{std::string{whose}, status}, &*record});
    }
  };
  if (const auto own = projects_.find(project); own != projects_.end()) {
    add(own->second, project);
    if (!own->second[0] && !own->second[1]) projects_.erase(own);
  }
  add(global_, "");
  return met;
}

std::optional<SteadyTime> FailureMemory::not_before(std::string_view project, SteadyTime now) {
  std::optional<SteadyTime> latest;
  for (const Met& met : met_by(project, now)) {
    if (met.record->until > now) latest = std::max(latest.value_or(now), met.record->until);
  }
  return latest;
}

const FailureMemory::Record* FailureMemory::find(const Name& name) const {
  const Records* records = &global_;
  if (!name.project.empty()) {
    const auto own = projects_.find(name.project);
    if (own == projects_.end()) return nullptr;
    records = &own->second;
  }
  const auto& record = (*records)[place(name.status)];
  return record ? &*record : nullptr;
}

void FailureMemory::learn(const Name& name, const CooldownRecord& record, const Instant& now) {
  // Nobody's clock makes it longer than it was when it began, nor shorter than nothing.
  const auto whole = std::max<nanoseconds>(record.not_before - record.last, nanoseconds{0});
  const auto left = std::clamp<nanoseconds>(record.not_before - now.wall, nanoseconds{0}, whole);
  const auto since = std::max<nanoseconds>(now.wall - record.last, nanoseconds{0});
  const SteadyTime until = now.steady + left;
  const auto over = left > nanoseconds{0} ? nanoseconds{0} : now.wall - record.not_before;
  if (over >= beyond(name.status)) return;  // of no use any more
  Record& own = get(name, now.steady);
  own.shared = own.shared.failures == 0 ? record : merged(own.shared, record);
  own.failed = std::max(own.failed, now.steady - since);
  own.until = std::max(own.until, until);
  own.useful_to = std::max(own.useful_to, until - over + beyond(name.status));
}

void FailureMemory::forget(const Name& name) {
  if (name.project.empty()) {
    global_[place(name.status)].reset();
  } else if (const auto own = projects_.find(name.project); own != projects_.end()) {
    own->second[place(name.status)].reset();
    if (!own->second[0] && !own->second[1]) projects_.erase(own);
  }
}

void FailureMemory::drop_useless(SteadyTime now) {
  const auto drop = [now](Records& records) {
    for (auto& record : records) {
      if (record && record->useless(now)) record.reset();
    }
    return !records[0] && !records[1];
  };
  drop(global_);
  for (auto own = projects_.begin(); own != projects_.end();) {
    own = drop(own->second) ? projects_.erase(own) : std::next(own);
  }
}

std::vector<FailureMemory::Met> FailureMemory::all() {
  std::vector<Met> all;
  const auto add = [&](Records& records, const std::string& whose) {
    for (const int status : kStatuses) {
      if (auto& record = records[place(status)]) all.push_back({{whose, status}, &*record});
    }
  };
  add(global_, "");
  for (auto& [project, records] : projects_) add(records, project);
  return all;
}

FailureMemory::Record& FailureMemory::get(const Name& name, SteadyTime now) {
  Records* records = &global_;
  if (!name.project.empty()) {
    auto own = projects_.find(name.project);
    if (own == projects_.end()) {
      if (projects_.size() >= most_) make_room(now);
      own = projects_.emplace(name.project, Records{}).first;
    }
    records = &own->second;
  }
  auto& record = (*records)[place(name.status)];
  if (record && record->useless(now)) record.reset();
  if (!record) record = Record{};
  return *record;
}

// A quarter at a time, so that it costs little for each that comes.
void FailureMemory::make_room(SteadyTime now) {
  const auto end_of = [now](const Records& records) {
    SteadyTime end = SteadyTime::min();
    for (const auto& record : records) {
      if (!record) continue;
      end = std::max(end, record->useful_to <= now ? SteadyTime::min() : record->until);
    }
    return end;
  };
  std::vector<std::pair<SteadyTime, decltype(projects_)::iterator>> ends;
  ends.reserve(projects_.size());
  for (auto own = projects_.begin(); own != projects_.end(); ++own) {
    ends.emplace_back(end_of(own->second), own);
  }
  const auto by_end = [](const auto& a, const auto& b) { return a.first < b.first; };
  const std::size_t go = std::max<std::size_t>(1, ends.size() / 4);
  std::nth_element(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(go - 1), ends.end(),
                   by_end);
  for (std::size_t i = 0; i < go; ++i) {
    const auto own = ends[i].second;
    for (const int status : kStatuses) {
      if (own->second[place(status)]) pushed_out_.push_back({own->first, status});
    }
    projects_.erase(own);
  }
}

}  // namespace weir
