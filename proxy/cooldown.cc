#include "proxy/cooldown.h"

#include <algorithm>
#include <utility>

namespace weir {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

Cooldown::Verdict Cooldown::ask(Visitor& visitor, SteadyTime now) {
  if (calm_.load(std::memory_order_acquire) && visitor.probe == 0) return {};
  Woken woken;
  Verdict verdict;
  {
    std::lock_guard lock(mutex_);
    verdict = judge(visitor, now, woken);
  }
  wake(woken);
  return verdict;
}

std::optional<Cooldown::Verdict> Cooldown::ask_again(Visitor& visitor, SteadyTime now) {
  Woken woken;
  Verdict verdict;
  {
    std::lock_guard lock(mutex_);
    if (!take_out(visitor)) return std::nullopt;
    verdict = judge(visitor, now, woken);
  }
  wake(woken);
  return verdict;
}

Cooldown::Verdict Cooldown::judge(Visitor& visitor, SteadyTime now, Woken& woken) {
  // Not every project comes again.
  if (now >= drop_useless_at_) {
    memory_.drop_useless(now);
    drop_useless_at_ = now + FailureMemory::kLeastUse;
  }
  const std::vector<FailureMemory::Met> met = memory_.met_by(visitor.project, now);
  update_calm();
  const std::optional<Obstacle> obstacle = find_obstacle(visitor, met, now, woken);
  if (!obstacle) return {};
  end_probe(visitor, now, woken);
  if (draining_) return {Verdict::Kind::draining};
  hold(visitor, *obstacle);
  return {Verdict::Kind::held, obstacle->until, obstacle->place == Visitor::Place::behind_probe};
}

bool Cooldown::free_now(Visitor& visitor, SteadyTime now) {
  if (calm_.load(std::memory_order_acquire) && visitor.probe == 0) return true;
  Woken woken;
  bool is_free = true;
  {
    std::lock_guard lock(mutex_);
    is_free = !find_obstacle(visitor, memory_.met_by(visitor.project, now), now, woken);
    if (!is_free) end_probe(visitor, now, woken);
  }
  wake(woken);
  return is_free;
}

// The delay that ends last; where all are over, a probe that somebody else is at. Where there is no
// obstacle, the visitor itself is the probe if anybody had to wait.
std::optional<Cooldown::Obstacle> Cooldown::find_obstacle(
    Visitor& visitor, const std::vector<FailureMemory::Met>& met, SteadyTime now, Woken& woken) {
  std::optional<Obstacle> latest;
  for (const auto& [name, record] : met) {
    if (record->until <= now || (latest && record->until <= latest->until)) continue;
    latest = Obstacle{name, record->until, Visitor::Place::asleep};
  }
  if (latest) return latest;
  for (const auto& [name, record] : met) {
    if (record->probed(now)) {
      if (record->probe == visitor.probe) continue;
      return Obstacle{name, record->probe_until, Visitor::Place::behind_probe};
    }
    const auto line = lines_.find(name);
    if (visitor.arrival == 0 && line == lines_.end()) continue;
    // Whose time has come too, though he has not noticed yet.
    const Visitor* const first = line == lines_.end() ? nullptr : first_of(line->second);
    if (first && (visitor.arrival == 0 || first->arrival < visitor.arrival)) {
      make_next_probe(line->second, *record, now, woken);
      if (line->second.empty()) lines_.erase(line);
      return Obstacle{name, record->probe_until, Visitor::Place::behind_probe};
    }
    make_probe(visitor, *record, now);
  }
  return std::nullopt;
}

bool Cooldown::leave(Visitor& visitor) {
  std::lock_guard lock(mutex_);
  return take_out(visitor);
}

bool Cooldown::take_out(Visitor& visitor) {
  if (visitor.place == Visitor::Place::none) return false;
  const auto line = lines_.find(visitor.held_by);
  auto& places =
      visitor.place == Visitor::Place::asleep ? line->second.asleep : line->second.behind_probe;
  places.erase(visitor.arrival);
  visitor.place = Visitor::Place::none;
  if (line->second.empty()) lines_.erase(line);
  return true;
}

void Cooldown::settle(Visitor& visitor, SteadyTime now) {
  if (visitor.probe == 0) return;
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    end_probe(visitor, now, woken);
  }
  wake(woken);
}

void Cooldown::failed(Visitor& visitor, const FailureMemory::Failure& failure, const Instant& now) {
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    const Name name = memory_.failed(failure, now);
    note(name, std::nullopt);
    free_pushed_out(now.wall, woken);
    update_calm();
    end_probe(visitor, now.steady, woken);
  }
  wake(woken);
  if (changed_) changed_();
}

void Cooldown::succeeded(Visitor& visitor, SteadyTime sent, const Instant& now) {
  if (calm_.load(std::memory_order_acquire) && visitor.probe == 0) return;
  Woken woken;
  std::vector<Name> cleared;
  {
    std::lock_guard lock(mutex_);
    cleared = memory_.succeeded(visitor.project, sent);
    for (const Name& name : cleared) {
      note(name, now.wall - (now.steady - sent));
      free_all(name, woken);
    }
    end_probe(visitor, now.steady, woken);
    update_calm();
  }
  wake(woken);
  if (changed_ && !cleared.empty()) changed_();
}

std::optional<SteadyTime> Cooldown::not_before(std::string_view project, SteadyTime now) {
  if (calm_.load(std::memory_order_acquire)) return std::nullopt;
  std::lock_guard lock(mutex_);
  return memory_.not_before(project, now);
}

Cooldown::Verdict Cooldown::foresee(std::string_view project, SteadyTime now) {
  if (calm_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  const std::optional<SteadyTime> until = memory_.not_before(project, now);
  std::optional<SteadyTime> probe_until;
  for (const auto& [name, record] : memory_.met_by(project, now)) {
    if (probe_until) break;
    if (record->probed(now)) {
      probe_until = record->probe_until;
    } else if (lines_.contains(name)) {
      probe_until = now + kProbeTime;
    }
  }
  if (!until && !probe_until) return {};
  if (draining_) return {Verdict::Kind::draining};
  return {Verdict::Kind::held, until ? *until : *probe_until, !until};
}

void Cooldown::configure(const CooldownOptions& options) {
  std::lock_guard lock(mutex_);
  memory_.configure(options);
}

void Cooldown::drain() {
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    draining_ = true;
    update_calm();
    while (!lines_.empty()) {
      const Name name = lines_.begin()->first;
      free_all(name, woken);
    }
  }
  wake(woken);
}

std::vector<CooldownView> Cooldown::view(SteadyTime now) {
  std::vector<CooldownView> views;
  std::lock_guard lock(mutex_);
  for (const auto& [name, record] : memory_.all()) {
    if (record->useful_to <= now) continue;
    CooldownView view{name, record->shared};
    if (record->until > now) view.left = duration_cast<milliseconds>(record->until - now);
    if (const auto line = lines_.find(name); line != lines_.end()) {
      view.waiting = line->second.asleep.size() + line->second.behind_probe.size();
    }
    views.push_back(std::move(view));
  }
  return views;
}

std::map<Cooldown::Name, std::optional<WallTime>> Cooldown::take_changes() {
  std::lock_guard lock(mutex_);
  return std::exchange(changes_, {});
}

std::optional<CooldownMemory::Kept> Cooldown::find(const Name& name) const {
  std::lock_guard lock(mutex_);
  const FailureMemory::Record* const record = memory_.find(name);
  if (!record) return std::nullopt;
  return CooldownMemory::Kept{record->shared, memory_.beyond(name.status)};
}

void Cooldown::learn(const Name& name, const CooldownRecord& record, const Instant& now) {
  Woken woken;
  bool changed = false;
  {
    std::lock_guard lock(mutex_);
    memory_.learn(name, record, now);
    changed = free_pushed_out(now.wall, woken);
    update_calm();
  }
  wake(woken);
  if (changed_ && changed) changed_();
}

void Cooldown::forget(const Name& name) {
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    if (changes_.contains(name)) return;
    memory_.forget(name);
    free_all(name, woken);
    update_calm();
  }
  wake(woken);
}

void Cooldown::hold(Visitor& visitor, const Obstacle& obstacle) {
  Line& line = lines_[obstacle.name];
  if (visitor.arrival == 0) visitor.arrival = ++last_arrival_;
  auto& places = obstacle.place == Visitor::Place::asleep ? line.asleep : line.behind_probe;
  places.emplace(visitor.arrival, &visitor);
  visitor.held_by = obstacle.name;
  visitor.place = obstacle.place;
}

// Whatever it was to find out is left to the next; behind a delay that it has brought about, all
// are told, so that they ask again and sleep.
void Cooldown::end_probe(Visitor& visitor, SteadyTime now, Woken& woken) {
  const std::uint64_t number = std::exchange(visitor.probe, 0);
  if (number == 0) return;
  for (const auto& [name, record] : memory_.met_by(visitor.project, now)) {
    if (record->probe != number) continue;
    record->probe = 0;
    const auto line = lines_.find(name);
    if (line == lines_.end()) continue;
    if (record->until > now) {
      free(line->second.behind_probe, woken);
    } else {
      make_next_probe(line->second, *record, now, woken);
    }
    if (line->second.empty()) lines_.erase(line);
  }
}

// The one that came first; the line is not empty.
Cooldown::Visitor* Cooldown::first_of(const Line& line) {
  if (line.asleep.empty()) return line.behind_probe.begin()->second;
  if (line.behind_probe.empty()) return line.asleep.begin()->second;
  return std::min(*line.asleep.begin(), *line.behind_probe.begin()).second;
}

void Cooldown::make_next_probe(Line& line, FailureMemory::Record& record, SteadyTime now,
                               Woken& woken) {
  Visitor& first = *first_of(line);
  (first.place == Visitor::Place::asleep ? line.asleep : line.behind_probe).erase(first.arrival);
  first.place = Visitor::Place::none;
  make_probe(first, record, now);
  woken.push_back(&first);
}

void Cooldown::make_probe(Visitor& visitor, FailureMemory::Record& record, SteadyTime now) {
  if (visitor.probe == 0) visitor.probe = ++last_probe_;
  record.probe = visitor.probe;
  record.probe_until = now + kProbeTime;
}

void Cooldown::free(Places& places, Woken& woken) {
  for (const auto& [arrival, visitor] : places) {
    visitor->place = Visitor::Place::none;
    woken.push_back(visitor);
  }
  places.clear();
}

void Cooldown::free_all(const Name& name, Woken& woken) {
  const auto line = lines_.find(name);
  if (line == lines_.end()) return;
  free(line->second.asleep, woken);
  free(line->second.behind_probe, woken);
  lines_.erase(line);
}

// Those that share it are to forget it too: there is no room for more than so many anywhere.
bool Cooldown::free_pushed_out(WallTime now, Woken& woken) {
  const std::vector<Name> names = memory_.take_pushed_out();
  for (const Name& name : names) {
    note(name, now);
    free_all(name, woken);
  }
  return !names.empty();
}

void Cooldown::note(const Name& name, std::optional<WallTime> cleared_by) {
  if (changed_) changes_[name] = cleared_by;
}

void Cooldown::wake(const Woken& woken) {
  for (const Visitor* visitor : woken) visitor->wake(visitor->who);
}

}  // namespace weir
