// What the coordinator does about one resource at a time: turn() is the list.

#include <utility>

#include "coordination/claim_size.h"
#include "coordination/coordinator.h"
#include "coordination/ledger.h"

namespace weir {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Units in hand that were not needed for this long go back to the store.
constexpr milliseconds kIdleInFlight{200};
constexpr seconds kIdle{1};
// Of them, what will be used in so many times that at the same rate stays.
constexpr std::int64_t kKeepPeriods = 5;
constexpr milliseconds kSample{200};

}  // namespace

void Coordinator::turn(const Shared& resource) {
  Books& books = resource->books;
  const Instant now = this->now();
  roll(*resource, now);
  const Allowance::Demand demand = resource->allowance()->look();
  resource->policy().lost += static_cast<std::uint64_t>(demand.lost);
  if (counts_here(books.limit.mode)) return see_to_line(*resource, demand, now);
  if (stopping_) {
    for (auto& [number, claim] : books.held) withdraw(*resource, claim, claim.units());
  }
  sample_rate(*resource, demand, now);
  note_returns(*resource, demand, now);
  withdraw_idle(*resource, demand, now);
  withdraw_excess(*resource);
  check_store(*resource, now);
  const bool late_copies_over = books.late_copies_until && now.steady >= *books.late_copies_until;
  if (books.late_copies_until && !late_copies_over) wake_at(*resource, *books.late_copies_until);
  const bool alone = claim_alone(*resource, demand, now);
  if ((books.pending && books.pending->under_way) || health_.down()) return;
  if (now.steady < books.retry_at) {
    wake_at(*resource, books.retry_at);
  } else if (books.pending) {
    resend(resource);
  } else if (!renew(resource, demand, now) && !give_back(resource)) {
    if (late_copies_over) books.late_copies_until.reset();
    if ((books.stale && demand.waiting > 0) || late_copies_over) {
      Pending refresh{.kind = Pending::Kind::refresh, .txn = read_txn(books.claims)};
      send(resource, std::move(refresh));
    } else if (!stopping_ && !alone) {
      claim(resource, demand, now);
    }
  }
}

// Opens the books for the window, mode and limit that hold now. A limit alone changes nothing but
// itself: what was claimed in this window still counts.
void Coordinator::roll(Resource& resource, const Instant& now) {
  Books& books = resource.books;
  const Limit limit = resource.policy().limit();
  const Window window =
      aligned(limit.mode) ? window_at(now.wall, limit.window) : Window{WallTime{}, limit.window};
  const bool same = books.open && books.limit.mode == limit.mode && books.window == window;
  const bool other_rule =
      books.open && (books.limit.mode != limit.mode || books.limit.window != limit.window);
  const bool other_units = std::exchange(books.limit, limit).units != limit.units;
  if (same) {
    if (!other_units) return;
    books.full = false;
    return tell(resource, now);
  }
  close_books(resource);
  if (!other_rule) books.left.clear();
  books.open = true;
  books.window = window;
  books.claims = keys_.claims_of(resource.policy().name(), resource.name(), limit.mode, window);
  tell(resource, now);
}

// Who waits where the allowance counts by itself needs no more than to be looked at when a window
// begins.
void Coordinator::see_to_line(Resource& resource, const Allowance::Demand& demand,
                              const Instant& now) {
  if (demand.waiting > 0) return full(resource, demand, now);
  resource.books.full = false;
}

// What was claimed in a window that is over runs out by itself. in_flight has no such end: when a
// reload changes the mode, each of its units goes back when its request has ended.
void Coordinator::close_books(Resource& resource) {
  Books& books = resource.books;
  Allowance& allowance = *resource.allowance();
  books.returns.clear();
  for (auto& [number, claim] : books.held) {
    if (claim.lease->kind == LeaseSlot::Kind::in_flight) {
      const std::int64_t unspent = allowance.recall(claim.batch);
      if (unspent > 0) books.returns.push_back({number, unspent, Return::Why::unspent});
      continue;
    }
    resource.policy().lost += static_cast<std::uint64_t>(allowance.write_off(claim.batch));
    for (const std::string& key : claim.keys) books.left.emplace(key, claim.lease->id);
  }
  std::erase_if(books.held, [](const auto& claim) {
    return claim.second.lease->kind != LeaseSlot::Kind::in_flight;
  });
  books.retiring.clear();
  books.orphans.clear();
  if (books.pending && books.pending->under_way) --under_way_;
  books.pending.reset();
  books.unanswered_since.reset();
  books.account = {};
  books.read_at = books.freed_at = 0;
  books.full = books.stale = false;
  books.conflicts = 0;
  books.polite_until.reset();
  books.alone = false;
  books.retry_at = {};
}

void Coordinator::sample_rate(Resource& resource, const Allowance::Demand& demand,
                              const Instant& now) {
  Books& books = resource.books;
  const auto elapsed = now.steady - books.sampled_at;
  if (elapsed < kSample) return;
  if (books.sampled_at != SteadyTime{}) {
    const double lately =
        static_cast<double>(demand.taken - books.taken) / duration<double>(elapsed).count();
    // A pause ends the steady use at once, so that nobody goes on claiming for it.
    books.rate = lately == 0 ? 0 : books.rate == 0 ? lately : (books.rate + lately) / 2;
  }
  books.sampled_at = now.steady;
  books.taken = demand.taken;
}

std::int64_t Coordinator::withdraw(Resource& resource, Claim& claim, std::int64_t units) {
  const std::int64_t got = resource.allowance()->withdraw(claim.batch, units);
  if (got > 0) resource.books.put_back({claim.number, got, Return::Why::unspent});
  return got;
}

// Units that have had their time: in_flight ones that came back when others should have their turn,
// sliding ones held too long, or used a window ago.
void Coordinator::note_returns(Resource& resource, const Allowance::Demand& demand,
                               const Instant& now) {
  Books& books = resource.books;
  for (const auto& batch : demand.surplus) {
    books.put_back({batch->claim, 1, Return::Why::ended});
  }
  if (books.limit.mode != Mode::sliding) return;
  const auto counted = books.limit.window + sliding_guard(books.limit.window);
  for (const auto& batch : demand.finished) {
    const bool used = batch->last_use != SteadyTime{};
    books.retiring.emplace_back(used ? batch->last_use + counted : now.steady, batch->claim);
  }
  for (auto& [number, claim] : books.held) {
    if (now.steady >= claim.batch->hold_until) {
      withdraw(resource, claim, claim.units());
    } else {
      wake_at(resource, claim.batch->hold_until);
    }
  }
  std::sort(books.retiring.begin(), books.retiring.end());
  while (!books.retiring.empty() && books.retiring.front().first <= now.steady) {
    const auto claim = books.held.find(books.retiring.front().second);
    if (claim != books.held.end()) {
      books.put_back({claim->first, claim->second.units(), Return::Why::ended});
    }
    books.retiring.erase(books.retiring.begin());
  }
  if (!books.retiring.empty()) wake_at(resource, books.retiring.front().first);
}

// Units that nobody here needs are for others. A replica that is alone keeps them, but for
// in_flight, where a person counts what is being served.
void Coordinator::withdraw_idle(Resource& resource, const Allowance::Demand& demand,
                                const Instant& now) {
  Books& books = resource.books;
  const bool in_flight = books.limit.mode == Mode::in_flight;
  if (books.limit.mode == Mode::sliding || (live_replicas_ == 1 && !in_flight)) return;
  if (health_.down()) return;  // they could not go back, and would be missed here
  if (demand.in_hand == 0 || demand.waiting > 0) {
    books.idle_since = {};
    return;
  }
  const SteadyTime::duration period = in_flight ? SteadyTime::duration{kIdleInFlight} : kIdle;
  if (books.idle_since != SteadyTime{} && now.steady >= books.idle_since + period) {
    const auto taken = static_cast<std::int64_t>(demand.taken - books.idle_taken);
    std::int64_t idle = demand.idle - (in_flight ? 0 : taken * kKeepPeriods);
    for (auto claim = books.held.rbegin(); claim != books.held.rend() && idle > 0; ++claim) {
      idle -= withdraw(resource, claim->second, idle);
    }
    books.idle_since = {};
  }
  if (books.idle_since == SteadyTime{}) {
    books.idle_since = now.steady;
    books.idle_taken = demand.taken;
    resource.allowance()->reset_idle();
  }
  wake_at(resource, books.idle_since + period);
}

// The limit was lowered: what was not spent by then goes back.
void Coordinator::withdraw_excess(Resource& resource) {
  Books& books = resource.books;
  std::int64_t excess = books.account.used - books.limit.units;
  for (const Return& part : books.returns) excess -= part.units;
  if (books.pending) {
    for (const Return& part : books.pending->returns) excess -= part.units;
  }
  for (auto claim = books.held.rbegin(); claim != books.held.rend() && excess > 0; ++claim) {
    if (claim->second.unrecorded == 0) excess -= withdraw(resource, claim->second, excess);
  }
}

// True: a transaction is on its way.
bool Coordinator::give_back(const Shared& resource) {
  Books& books = resource->books;
  Pending pending{.kind = Pending::Kind::give_back};
  std::vector<OwnKey> keys;
  while (keys.size() < kMaxKeys && !books.orphans.empty()) {
    keys.push_back(std::move(books.orphans.back()));
    books.orphans.pop_back();
  }
  while (keys.size() < kMaxKeys && !books.returns.empty()) {
    Return& next = books.returns.front();
    const auto found = books.held.find(next.claim);
    if (found == books.held.end()) {
      books.returns.erase(books.returns.begin());
      continue;
    }
    Claim& claim = found->second;
    if (next.units < claim.units_per_key) {  // a part of what one key stands for
      if (!keys.empty()) break;
      shrink_claim(resource);
      return true;
    }
    Return part{next.claim, 0, next.why};
    while (next.units >= claim.units_per_key && !claim.keys.empty() && keys.size() < kMaxKeys) {
      keys.push_back({std::move(claim.keys.back()), claim.lease->id});
      claim.keys.pop_back();
      next.units -= claim.units_per_key;
      part.units += claim.units_per_key;
    }
    pending.returns.push_back(part);
    if (claim.keys.empty()) books.held.erase(found);
    if (next.units == 0 || !books.held.contains(part.claim))
      books.returns.erase(books.returns.begin());
  }
  if (keys.empty()) return false;
  pending.txn = delete_txn(books.claims, keys);
  send(resource, std::move(pending));
  return true;
}

// Gives back part of the units that one key stands for.
void Coordinator::shrink_claim(const Shared& resource) {
  Books& books = resource->books;
  const Return part = books.returns.front();
  books.returns.erase(books.returns.begin());
  Claim& claim = books.held.at(part.claim);
  Pending pending{.kind = Pending::Kind::give_back,
                  .txn = shrink_txn(books.claims, claim, part.units),
                  .returns = {part}};
  claim.shrink(part.units);
  send(resource, std::move(pending));
}

}  // namespace weir
