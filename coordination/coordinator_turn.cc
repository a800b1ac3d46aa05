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
// The wall clock may be set while somebody waits for a window to end: look again at least this
// often.
constexpr seconds kLookAgain{1};
// Keys in one transaction, beside the read that comes with them.
constexpr std::size_t kMaxKeys = kMaxOps - 2;

}  // namespace

void Coordinator::turn(const Shared& resource) {
  Books& books = resource->books;
  const Instant now = this->now();
  roll(*resource, now);
  const Allowance::Demand demand = resource->allowance()->look();
  resource->policy().lost += static_cast<std::uint64_t>(demand.lost);
  if (stopping_) {
    for (auto& [number, claim] : books.held) withdraw(*resource, claim, claim.units());
  }
  sample_rate(*resource, demand, now);
  note_returns(*resource, demand, now);
  withdraw_idle(*resource, demand, now);
  withdraw_excess(*resource);
  check_store(*resource, now);
  const bool alone = claim_alone(*resource, demand, now);
  if ((books.pending && books.pending->under_way) || health_.down()) return;
  if (now.steady < books.retry_at) {
    wake_at(*resource, books.retry_at);
  } else if (books.pending) {
    resend(resource);
  } else if (!renew(resource, demand, now) && !give_back(resource)) {
    if (books.stale && demand.waiting > 0) {
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

// What one replica may keep of a limit for as long as it needs it, where others want some too.
std::int64_t Coordinator::fair_share(const Books& books) const {
  const int among = std::max(live_replicas_, books.account.others ? 2 : 1);
  return share_of(books.limit.units, among, std::min(own_index_.value_or(0), among - 1));
}

// Small limits have a key for each unit.
Claim Coordinator::new_claim(const Books& books, const std::shared_ptr<LeaseSlot>& lease,
                             std::int64_t units, const Instant& now) {
  Claim claim;
  claim.number = next_number_++;
  claim.lease = lease;
  claim.at = now.wall;
  const bool one_key = claim_quantum(books.limit.units) > 1;
  if (one_key) claim.units_per_key = units;
  for (std::int64_t i = 0; i < (one_key ? 1 : units); ++i) {
    claim.keys.push_back(
        keys_.claim(books.claims, books.limit.mode, lease->window.start, next_seq_++));
  }
  return claim;
}

// Sliding units that were used a window ago and are needed again are put anew in one transaction,
// so that nothing of the limit lies idle between going back and being claimed. Only where no other
// replica wants some, whose claims would fail for every key that is made here. True: it is on its
// way.
bool Coordinator::renew(const Shared& resource, const Allowance::Demand& demand,
                        const Instant& now) {
  Books& books = resource->books;
  if (books.limit.mode != Mode::sliding || books.returns.empty() || stopping_) return false;
  if (live_replicas_ > 1 || books.account.others) return false;
  if (books.account.used > books.limit.units || closed_until(books, now)) return false;
  const std::int64_t wanted = std::min(static_cast<std::int64_t>(demand.waiting) - demand.in_hand,
                                       books.limit.units - books.in_use());
  if (wanted <= 0) return false;
  const auto lease = leases_.get(books.limit.mode, books.window, now, [] {});
  if (!lease || lease->state != LeaseSlot::State::ready) return false;
  Books::Ended ended = books.take_ended(wanted, kMaxKeys / 2);
  if (ended.units == 0) return false;
  Pending pending{.kind = Pending::Kind::renewal};
  pending.claim = new_claim(books, lease, std::min(wanted, ended.units), now);
  pending.old = std::move(ended.keys);
  pending.txn = renew_txn(books.claims, pending.old, pending.claim);
  send(resource, std::move(pending));
  return true;
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
  claim.units_per_key -= part.units;
  send(resource, std::move(pending));
}

// Nothing is to be had before something changes; until then nothing is sent.
void Coordinator::full(Resource& resource, const Allowance::Demand& demand, const Instant& now) {
  Books& books = resource.books;
  if (!books.full) {
    ++stats_.short_of;
    books.full = true;
  }
  tell(resource, now);
  resource.allowance()->refuse(Refusal::limit, Allowance::Whom::impatient);
  resource.allowance()->refuse_excess();
  if (demand.waiting > 0 && aligned(books.limit.mode)) {
    wake_at(resource,
            now.steady + std::min<SteadyTime::duration>(books.window.end() - now.wall, kLookAgain));
  }
}

void Coordinator::claim(const Shared& resource, const Allowance::Demand& demand,
                        const Instant& now) {
  Books& books = resource->books;
  std::int64_t held = 0;
  for (const auto& [number, claim] : books.held) held += claim.units();
  const ClaimFacts facts{
      .limit = books.limit.units,
      .used = books.account.used,
      .waiting = static_cast<std::int64_t>(demand.waiting),
      .in_hand = demand.in_hand,
      .held = held,
      .rate = books.rate,
      .txn_time = books.txn_time,
      .window_left = aligned(books.limit.mode) ? duration<double>(books.window.end() - now.wall)
                                               : duration<double>(books.limit.window),
      .live_replicas = live_replicas_,
      .contested = books.account.others,
  };
  if (facts.used >= facts.limit && demand.waiting > 0 && books.freed_at > books.read_at) {
    books.stale = true;  // less is used than the account says: look before they are told to wait
    return again(resource);
  }
  std::int64_t units = claim_size(facts);
  const std::optional<SteadyTime> closed = closed_until(books, now);
  bool kept_to_share = false;
  if (units > 0 && keeps_to_share(books, now)) {
    units = std::clamp<std::int64_t>(own_share(books.limit) - held, 0, units);
    kept_to_share = units == 0;
    wake_at(*resource, now.steady + kLookAgain);
  }
  std::shared_ptr<LeaseSlot> lease;
  if (units > 0 && !closed) {
    lease =
        leases_.get(books.limit.mode, books.window, now, [this, weak = resource->weak_from_this()] {
          const Shared shared = weak.lock();
          if (!shared) return;
          shared->books.unanswered_since.reset();
          again(shared);
        });
  }
  if (facts.used >= facts.limit || closed || kept_to_share || (units > 0 && !lease)) {
    if (closed) wake_at(*resource, *closed);
    return full(*resource, demand, now);
  }
  books.full = false;
  tell(*resource, now);
  if (units == 0) return;
  if (lease->state != LeaseSlot::State::ready) {
    if (!books.unanswered_since) books.unanswered_since = now.steady;
    return wake_at(*resource, *books.unanswered_since + 2 * options_.store_timeout);
  }
  Pending pending{.kind = Pending::Kind::claim};
  if (claim_quantum(books.limit.units) == 1) units = std::min<std::int64_t>(units, kMaxKeys);
  pending.claim = new_claim(books, lease, units, now);
  pending.txn = claim_txn(books.claims, books.account, pending.claim);
  resource->remembered_until = aligned(books.limit.mode)
                                   ? books.window.end().time_since_epoch().count()
                                   : WallTime::max().time_since_epoch().count();
  send(resource, std::move(pending));
}

}  // namespace weir
