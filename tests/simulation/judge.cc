#include "tests/simulation/judge.h"

#include <charconv>
#include <utility>

#include "coordination/window.h"

namespace weir::sim {
namespace {

constexpr std::string_view kClaims = "/weir/v1/claims/";

bool comes_back(Mode mode) { return mode == Mode::in_flight || mode == Mode::until_done; }

std::int64_t units_of(std::string_view value) {
  constexpr std::string_view name = "\"units\":";
  const std::size_t at = value.find(name);
  std::int64_t units = 0;
  if (at != value.npos) {
    std::from_chars(value.data() + at + name.size(), value.data() + value.size(), units);
  }
  return units;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace

std::optional<Judge::Place> Judge::place_of(std::string_view key) {
  if (!key.starts_with(kClaims)) return std::nullopt;
  key.remove_prefix(kClaims.size());
  const std::size_t at = key.find('@');
  const std::size_t slash = key.find('/', at == key.npos ? 0 : at);
  const std::size_t last = key.rfind('/');
  const std::size_t dash = key.rfind('-');
  if (at == key.npos || slash == key.npos || dash == key.npos || dash < last) return std::nullopt;
  return Place{std::string(key.substr(0, slash)),
               std::string(key.substr(last + 1, dash - last - 1))};
}

void Judge::fail(std::string check, std::string text) {
  if (violation_) return;
  violation_ = Violation{std::move(check), "at " + std::to_string(since_start(events_.now())) +
                                               " s: " + std::move(text)};
}

std::int64_t Judge::used(const std::string& range) const {
  const auto found = ranges_.find(range);
  return found == ranges_.end() ? 0 : found->second.used;
}

std::int64_t Judge::counted(const std::string& range) const {
  const auto found = ranges_.find(range);
  return found == ranges_.end() ? 0 : found->second.counted;
}

std::int64_t Judge::in_flight() const {
  std::int64_t units = 0;
  for (const auto& [name, range] : ranges_) {
    if (name.ends_with("@in_flight")) units += range.used;
  }
  return units;
}

SteadyTime Judge::full_at(const std::string& range) const {
  const auto found = ranges_.find(range);
  return found == ranges_.end() ? SteadyTime{} : found->second.full_at;
}

void Judge::on_revision(Revision revision, std::span<const WatchEvent> events) {
  note(static_cast<std::uint64_t>(revision));
  // What a transaction takes away and what it puts are one step: the sum is judged after it.
  std::map<std::string, std::int64_t> before;
  for (const WatchEvent& event : events) {
    const auto place = place_of(event.key.key);
    if (!place) {
      fail("strange_key", event.key.key);
      return;
    }
    before.try_emplace(place->range, used(place->range));
  }
  for (const WatchEvent& event : events) {
    note(hash_of(event.key.key));
    if (event.kind == WatchEvent::Kind::put) {
      put(event);
    } else {
      deleted(event);
    }
  }
  for (const auto& [name, was] : before) {
    Range& range = ranges_[name];
    if (range.used == 0) range.most = 0;
    if (range.used < was && cause_.kind == Cause::Kind::txn) check_covered(name, range);
    if (range.used > was) range.limit = cause_.limit;
    if (std::max(range.used, was) >= range.limit) range.full_at = events_.now();
    if (range.used <= was) continue;
    range.most = std::max(range.most, cause_.limit);
    if (range.used > cause_.limit) {
      fail("store_over_limit", name + " has " + std::to_string(range.used) + " units of " +
                                   std::to_string(cause_.limit) + " at revision " +
                                   std::to_string(revision));
    }
  }
}

void Judge::put(const WatchEvent& event) {
  const auto place = place_of(event.key.key);
  const Key key{place->range, event.key.lease, units_of(event.key.value)};
  Range& range = ranges_[place->range];
  if (const auto found = keys_.find(event.key.key); found != keys_.end()) {
    Key& before = found->second;
    // A sliding one may be renewed, which gives it another lease; all others only shrink.
    const bool renewed = key.lease != before.lease && place->range.ends_with("@sliding");
    if (key.units > before.units || key.units < 1 ||
        (!renewed && (key.units == before.units || key.lease != before.lease))) {
      return fail("claim_grew", event.key.key + " is put again and does not shrink");
    }
    range.used -= before.units;
    range.by_lease[before.lease].units -= before.units;
    keys_.erase(found);
  }
  range.used += key.units;
  range.by_lease[key.lease].units += key.units;
  keys_.emplace(event.key.key, key);
}

void Judge::deleted(const WatchEvent& event) {
  const auto found = keys_.find(event.key.key);
  if (found == keys_.end()) return fail("strange_key", "deleted: " + event.key.key);
  const Key key = found->second;
  keys_.erase(found);
  Range& range = ranges_[key.range];
  range.used -= key.units;
  range.by_lease[key.lease].units -= key.units;
  if (cause_.kind == Cause::Kind::injected) {
    injected_.insert(key.lease);
    forget_lease(key.lease);
  } else if (cause_.kind == Cause::Kind::expiry) {
    expired_.insert(key.lease);
    // Requests in flight on it are no longer known to anybody: their replica has to say so.
    if (key.range.ends_with("@in_flight")) forget_lease(key.lease);
  }
}

// What was sent under it no longer counts.
void Judge::forget_lease(LeaseId lease) {
  for (auto& [name, range] : ranges_) {
    const auto found = range.by_lease.find(lease);
    if (found == range.by_lease.end()) continue;
    range.counted -= std::exchange(found->second.counted, 0);
    std::erase_if(range.recent, [lease](const auto& entry) { return entry.second == lease; });
  }
  for (auto& [number, served] : served_) {
    if (served.lease == lease) served.lost = true;
  }
}

void Judge::forget_old(Range& range, seconds window) {
  while (!range.recent.empty() && range.recent.front().first + window <= events_.now()) {
    --range.counted;
    --range.by_lease[range.recent.front().second].counted;
    range.recent.pop_front();
  }
}

// Units in the store are never fewer than those that were spent and still count. A sliding range is
// looked at on arrival, when what is old is forgotten.
void Judge::check_covered(const std::string& name, const Range& range) {
  if (name.ends_with("@sliding")) return;
  for (const auto& [lease, under] : range.by_lease) {
    if (under.counted <= under.units) continue;
    fail("not_covered", name + ": " + std::to_string(under.counted) +
                            " spent units that count, but the store has " +
                            std::to_string(under.units) + " under their lease " +
                            "after a deletion");
  }
}

std::uint64_t Judge::arrived(const Arrival& arrival) {
  const std::uint64_t number = ++arrivals_;
  note(hash_of(arrival.range) ^ arrival.claim);
  Range& range = ranges_[arrival.range];
  if (arrival.sole) {
    if (range.counted == 0) range.most = 0;
    range.most = std::max(range.most, arrival.most);
    if (comes_back(arrival.mode)) served_.emplace(number, Served{arrival.range, 0, 0, false});
    if (++range.counted >= range.most) range.full_at = events_.now();
    ++range.by_lease[0].counted;
    check_counts(arrival, range);
    return number;
  }
  if (arrival.mode == Mode::sliding) forget_old(range, arrival.window);
  const std::int64_t of_claim = ++by_claim_[arrival.claim];
  if (of_claim > arrival.claim_units) {
    fail("spent_twice", arrival.range + ": arrival " + std::to_string(of_claim) +
                            " on a claim that has " + std::to_string(arrival.claim_units) +
                            " units");
  }
  const bool lost = injected_.contains(arrival.lease);
  if (comes_back(arrival.mode)) {
    served_.emplace(number, Served{arrival.range, arrival.lease, arrival.claim, lost});
  }
  if (lost) return number;
  if (expired_.contains(arrival.lease)) {
    fail("lease_ran_out", arrival.range + ": sent on a lease that has run out");
  }
  ++range.counted;
  ++range.by_lease[arrival.lease].counted;
  if (arrival.mode == Mode::sliding) range.recent.emplace_back(events_.now(), arrival.lease);
  check_counts(arrival, range);
  const UnderLease& under = range.by_lease[arrival.lease];
  if (under.counted > under.units) {
    fail("not_covered", arrival.range + ": " + std::to_string(under.counted) +
                            " spent units that count, but the store has " +
                            std::to_string(under.units) + " under their lease, on arrival");
  }
  return number;
}

void Judge::check_counts(const Arrival& arrival, const Range& range) {
  const auto over = [&](const char* check, std::int64_t most) {
    if (range.counted <= most) return;
    fail(check,
         arrival.range + ": " + std::to_string(range.counted) + " of " + std::to_string(most));
  };
  switch (arrival.mode) {
    case Mode::started:
      over("window_over_limit", range.most);
      break;
    case Mode::until_done:
    case Mode::in_flight:
      over("in_flight_over_limit", range.most);
      break;
    case Mode::sliding:
      over("sliding_over_limit", arrival.most);
      break;
  }
  if (arrival.mode == Mode::started || arrival.mode == Mode::until_done) {
    const auto start = parse_utc(arrival.range.substr(arrival.range.find('@') + 1));
    if (!start || arrival.clock >= *start + arrival.window) {
      fail("wrong_window", arrival.range + ": sent at " + utc_text_ms(arrival.clock));
    }
  }
}

void Judge::ended(std::uint64_t number) {
  const auto found = served_.find(number);
  if (found == served_.end()) return;
  const Served& served = found->second;
  --by_claim_[served.claim];
  if (!served.lost) {
    Range& range = ranges_[served.range];
    --range.counted;
    --range.by_lease[served.lease].counted;
  }
  served_.erase(found);
}

}  // namespace weir::sim
