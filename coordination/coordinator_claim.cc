// How the coordinator claims: how much, and after whom.

#include <algorithm>
#include <utility>

#include "coordination/claim_size.h"
#include "coordination/coordinator.h"
#include "coordination/ledger.h"

namespace weir {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The wall clock may be set while somebody waits for a window to end: look again at least this
// often.
constexpr seconds kLookAgain{1};

// For how long who has a fair share lets others come first; half of it at least. Some round trips
// of one that is far from the store, and little beside the window; less where a unit that is not
// used meanwhile is lost to everybody.
SteadyTime::duration politeness(const Limit& limit) {
  constexpr milliseconds least{20}, most{100};
  if (limit.mode == Mode::in_flight) return most;
  return std::clamp<SteadyTime::duration>(
      SteadyTime::duration{limit.window} / (aligned(limit.mode) ? 20 : 50), least, most);
}

}  // namespace

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

// A claim of ours as it is to be from now on, with at most so many units.
Claim Coordinator::renewed(const Claim& old, const std::shared_ptr<LeaseSlot>& lease,
                           std::int64_t units, const Instant& now) {
  Claim claim;
  claim.number = next_number_++;
  claim.lease = lease;
  claim.at = std::max<WallTime>(now.wall, old.at + milliseconds{1});
  claim.units_per_key = old.units_per_key;
  if (units < old.units_per_key) claim.shrink(old.units_per_key - units);
  const auto keys = std::min(std::ssize(old.keys), units / claim.units_per_key);
  claim.keys.assign(old.keys.begin(), old.keys.begin() + keys);
  return claim;
}

// Sliding units that were used a window ago and are needed again are renewed in place, so that
// nothing of the limit lies idle between going back and being claimed; but no more of them than a
// fair share. True: it is on its way.
bool Coordinator::renew(const Shared& resource, const Allowance::Demand& demand,
                        const Instant& now) {
  Books& books = resource->books;
  if (books.limit.mode != Mode::sliding || books.returns.empty() || stopping_) return false;
  if (books.account.used > books.limit.units || closed_until(books, now)) return false;
  const bool others = live_replicas_ > 1 || books.account.others;
  const std::int64_t room = (others ? fair_share(books) : books.limit.units) - books.in_use();
  ClaimFacts facts = facts_of(books, demand, now);
  facts.used = facts.limit - room;
  facts.contested = false;
  std::int64_t wanted = claim_size(facts);
  if (wanted <= 0) return false;
  const auto lease = leases_.get(books.limit.mode, books.window, now, [] {});
  if (!lease || lease->state != LeaseSlot::State::ready) return false;
  const std::vector<Claim> ended = books.take_ended(wanted, kMaxKeys, lease);
  if (ended.empty()) return false;
  Pending pending{.kind = Pending::Kind::renewal};
  for (const Claim& old : ended) {
    for (const std::string& key : old.keys) pending.old.push_back({key, old.lease->id});
    pending.claims.push_back(renewed(old, lease, wanted, now));
    wanted -= pending.claims.back().units();
  }
  pending.txn = renew_txn(books.claims, ended, pending.claims);
  send(resource, std::move(pending));
  return true;
}

// Nothing is to be had before something changes; until then nothing is sent.
void Coordinator::full(Resource& resource, const Allowance::Demand& demand, const Instant& now) {
  Books& books = resource.books;
  if (!books.full) {
    ++stats_.short_of;
    books.full = true;
  }
  books.polite_until.reset();
  tell(resource, now);
  resource.allowance()->refuse(Refusal::limit, Allowance::Whom::impatient);
  resource.allowance()->refuse_excess();
  if (demand.waiting > 0 && aligned(books.limit.mode)) {
    wake_at(resource,
            now.steady + std::min<SteadyTime::duration>(books.window.end() - now.wall, kLookAgain));
  }
}

// Below its fair share a replica claims at once. Above it, where others want some too, it holds
// back for a moment in which there is room: one that is farther from the store, whose claims fail
// for every one that is made meanwhile, would never get any. If nobody has come by then it is
// alone, as far as it knows.
bool Coordinator::lets_others_first(Resource& resource, const ClaimFacts& facts,
                                    const Instant& now) {
  Books& books = resource.books;
  if (!facts.contested || facts.share_left > 0) return false;
  if (!books.polite_until) {
    const auto half = static_cast<std::uint64_t>(politeness(books.limit).count() / 2);
    books.polite_until =
        now.steady + SteadyTime::duration{half} + SteadyTime::duration{random_.below(half) + 1};
  }
  if (now.steady >= *books.polite_until) return false;
  wake_at(resource, *books.polite_until);
  return true;
}

ClaimFacts Coordinator::facts_of(const Books& books, const Allowance::Demand& demand,
                                 const Instant& now) const {
  ClaimFacts facts{
      .limit = books.limit.units,
      .used = books.account.used,
      .waiting = static_cast<std::int64_t>(demand.waiting),
      .in_hand = demand.in_hand,
      .rate = books.rate,
      .txn_time = books.txn_time,
      .window_left = aligned(books.limit.mode) ? duration<double>(books.window.end() - now.wall)
                                               : duration<double>(books.limit.window),
      .live_replicas = live_replicas_,
      .share_left = std::max<std::int64_t>(1, fair_share(books)) - books.in_use(),
      .contested = books.account.others || (live_replicas_ > 1 && !books.alone),
  };
  for (const auto& [number, claim] : books.held) facts.held += claim.units();
  // Others have had their turn, and what nobody takes is lost to all of them.
  if (!aligned(books.limit.mode) && facts.share_left <= 0) facts.live_replicas = 1;
  return facts;
}

void Coordinator::claim(const Shared& resource, const Allowance::Demand& demand,
                        const Instant& now) {
  Books& books = resource->books;
  const ClaimFacts facts = facts_of(books, demand, now);
  if (facts.used >= facts.limit && demand.waiting > 0 && books.freed_at > books.read_at) {
    books.stale = true;  // less is used than the account says: look before they are told to wait
    return again(resource);
  }
  std::int64_t units = claim_size(facts);
  const std::optional<SteadyTime> closed = closed_until(books, now);
  bool kept_to_share = false;
  if (units > 0 && keeps_to_share(books, now)) {
    units = std::clamp<std::int64_t>(own_share(books.limit) - facts.held, 0, units);
    kept_to_share = units == 0;
    wake_at(*resource, now.steady + kLookAgain);
  }
  const auto lease = units > 0 && !closed ? lease_for(resource, now) : nullptr;
  if (facts.used >= facts.limit || closed || kept_to_share || (units > 0 && !lease)) {
    if (closed) wake_at(*resource, *closed);
    return full(*resource, demand, now);
  }
  books.full = false;
  tell(*resource, now);
  if (units == 0 || lets_others_first(*resource, facts, now)) return;
  if (lease->state != LeaseSlot::State::ready) {
    if (!books.unanswered_since) books.unanswered_since = now.steady;
    return wake_at(*resource, *books.unanswered_since + 2 * options_.store_timeout);
  }
  Pending pending{.kind = Pending::Kind::claim};
  if (claim_quantum(books.limit.units) == 1) units = std::min<std::int64_t>(units, kMaxKeys);
  pending.claims.push_back(new_claim(books, lease, units, now));
  pending.txn = claim_txn(books.claims, books.account, pending.claims.front());
  resource->remembered_until = aligned(books.limit.mode)
                                   ? books.window.end().time_since_epoch().count()
                                   : WallTime::max().time_since_epoch().count();
  send(resource, std::move(pending));
}

// The one for a claim made now; asked for, if need be. nullptr: there is none to be had.
std::shared_ptr<LeaseSlot> Coordinator::lease_for(const Shared& resource, const Instant& now) {
  const Books& books = resource->books;
  return leases_.get(books.limit.mode, books.window, now, [this, weak = std::weak_ptr(resource)] {
    const Shared shared = weak.lock();
    if (!shared) return;
    shared->books.unanswered_since.reset();
    again(shared);
  });
}

}  // namespace weir
