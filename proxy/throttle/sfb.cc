#include "proxy/throttle/sfb.h"

#include <algorithm>

namespace weir {
namespace {

constexpr double kBinShare = 1.5;
constexpr int kWarmPart = 10;  // of the interval, its last one
constexpr std::chrono::seconds kLimitingFor{1};
constexpr std::chrono::seconds kInUseFor{1};

}  // namespace

Sfb::Sfb(const SfbOptions& options, Random& random, SteadyTime now)
    : options_(options),
      capacity_(options.capacity),
      sets_{Set{TenantHash(random), 0, {}}, Set{TenantHash(random), 1, {}}},
      turned_at_(now) {
  for (Set& set : sets_) {
    set.bins.resize(static_cast<std::size_t>(options.levels) *
                    static_cast<std::size_t>(options.bins));
  }
}

Places Sfb::find(const Set& set, std::string_view tenant) const {
  return places_by_level(set.hash(tenant), options_.levels, options_.bins);
}

// The next set takes over, and another one is begun.
void Sfb::advance(SteadyTime now) {
  if (now - turned_at_ < options_.rehash) return;
  turned_at_ = now;
  ++generation_;
  Set& fresh = next();
  fresh.hash.turn();
  fresh.generation = generation_ + 1;
  std::fill(fresh.bins.begin(), fresh.bins.end(), Bin{});
}

double Sfb::bin_size() const { return kBinShare * capacity_.value() / options_.bins; }

// A request asks: what that changes, and the probability that it is denied with.
double Sfb::adjust(Set& set, const Places& places, SteadyTime now) const {
  const double size = bin_size();
  double least = 1;
  for (const auto at : places) {
    Bin& bin = set.bins[at];
    bin.asked = now;
    const bool full = bin.under_way >= size;
    const bool room = bin.under_way < size / 2;
    const bool may_change = bin.changed == SteadyTime::min() || now - bin.changed >= options_.hold;
    if (may_change && (full || room)) {
      bin.p = full ? std::min(1.0, bin.p + options_.d1) : std::max(0.0, bin.p - options_.d2);
      bin.changed = now;
    }
    least = std::min(least, bin.p);
  }
  if (least > 0) {
    for (const auto at : places) set.bins[at].limiting_at = now;
  }
  return least;
}

// Where the tenant's requests fill the next set's bins too, it need not be found out again. One
// that suffers with another has bins of its own there, which are not full.
void Sfb::take_over(double p, const Places& next_places) {
  for (const auto at : next_places) {
    Bin& bin = next().bins[at];
    if (bin.under_way >= bin_size()) bin.p = std::max(bin.p, p);
  }
}

Throttle::Ticket Sfb::accept(std::string_view tenant, SteadyTime now) {
  std::lock_guard lock(mutex_);
  advance(now);
  const Places places = find(in_use(), tenant);
  const Places next_places = find(next(), tenant);
  const double p = adjust(in_use(), places, now);
  if (now - turned_at_ >= options_.rehash - options_.rehash / kWarmPart) {
    adjust(next(), next_places, now);
    take_over(p, next_places);
  }
  if (p >= 1) {
    penalty_.refill(options_.penalty_rate, options_.penalty_burst, now);
    if (!penalty_.take()) return denied(until_one(penalty_.tokens(), options_.penalty_rate));
  } else if (p > 0 && in_use().hash.fraction() < p) {
    return denied(options_.hold);
  }
  for (const auto at : places) ++in_use().bins[at].under_way;
  for (const auto at : next_places) ++next().bins[at].under_way;
  return granted(places, next_places, generation_);
}

// A set that was cleared meanwhile has forgotten what entered it before.
void Sfb::leave(const Held& held) {
  const auto leave_set = [this](std::uint32_t generation, const Places& places) {
    Set& set = sets_[generation % 2];
    if (set.generation != generation) return;
    for (const auto at : places) --set.bins[at].under_way;
  };
  leave_set(held.generation, held.places);
  leave_set(held.generation + 1, held.next_places);
}

void Sfb::settled(const Held& held, Load load, SteadyTime now) {
  std::lock_guard lock(mutex_);
  leave(held);
  if (load == Load::too_much) {
    capacity_.overload(now);
  } else if (load == Load::borne && limiting(held, now)) {
    capacity_.success();
  }
}

// In the set in use; what entered before that was begun tells nothing.
bool Sfb::limiting(const Held& held, SteadyTime now) const {
  const bool entered = held.generation == generation_;
  if (!entered && held.generation + 1 != generation_) return false;
  const Places& places = entered ? held.places : held.next_places;
  return std::all_of(places.begin(), places.end(),
                     [&](auto at) { return in_use().bins[at].limiting_at >= now - kLimitingFor; });
}

void Sfb::dropped(const Held& held) {
  std::lock_guard lock(mutex_);
  leave(held);
  ++dropped_;
}

double Sfb::probability(std::string_view tenant) const {
  std::lock_guard lock(mutex_);
  double least = 1;
  for (const auto at : find(in_use(), tenant)) least = std::min(least, in_use().bins[at].p);
  return least;
}

std::vector<Sfb::Level> Sfb::under_way() const {
  std::lock_guard lock(mutex_);
  std::vector<Level> levels;
  for (auto bin = in_use().bins.begin(); bin != in_use().bins.end(); bin += options_.bins) {
    Level level{0, bin->under_way, bin->under_way};
    for (auto at = bin; at != bin + options_.bins; ++at) {
      level.under_way += at->under_way;
      level.least = std::min(level.least, at->under_way);
      level.most = std::max(level.most, at->under_way);
    }
    levels.push_back(level);
  }
  return levels;
}

ThrottleFacts Sfb::facts(SteadyTime now) const {
  std::lock_guard lock(mutex_);
  const auto& bins = in_use().bins;
  const auto used = std::count_if(bins.begin(), bins.end(),
                                  [&](const Bin& bin) { return bin.asked >= now - kInUseFor; });
  return {capacity_.value(), static_cast<int>(bins.size()), static_cast<int>(used), dropped_};
}

}  // namespace weir
