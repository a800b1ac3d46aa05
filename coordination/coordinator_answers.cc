// How the coordinator sends transactions for a resource, and what follows from their answers.

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

// Units of in_flight that come back are handed on for this long before other replicas get their
// turn.
constexpr seconds kTenure{1};
// How long after its sending a transaction may still be applied. etcd gives up a request after 7 s;
// one that a leader has lost is not proposed again.
constexpr seconds kLateCopies{30};

}  // namespace

void Coordinator::send(const Shared& resource, Pending pending) {
  Books& books = resource->books;
  pending.number = next_number_++;
  pending.first_sent = clock_.steady_now();
  if (!books.unanswered_since) books.unanswered_since = pending.first_sent;
  wake_at(*resource, *books.unanswered_since + 2 * options_.store_timeout);
  books.pending = std::move(pending);
  resend(resource);
}

void Coordinator::resend(const Shared& resource) {
  Pending& pending = *resource->books.pending;
  ++pending.sends;
  pending.under_way = true;
  ++under_way_;
  health_.txn(pending.txn, [this, resource, number = pending.number](Answer<TxnAnswer> answer) {
    on_answer(resource, number, std::move(answer));
  });
}

void Coordinator::on_answer(const Shared& resource, std::uint64_t number,
                            Answer<TxnAnswer> answer) {
  Books& books = resource->books;
  // The books may have been closed over it.
  if (!books.pending || books.pending->number != number || !books.pending->under_way) return;
  --under_way_;
  books.pending->under_way = false;
  if (const auto* error = std::get_if<StoreError>(&answer)) {
    on_failure(resource, *error);
  } else {
    Pending pending = *std::exchange(books.pending, std::nullopt);
    const auto& told = std::get<TxnAnswer>(answer);
    books.unanswered_since.reset();
    if (books.store_down) store_is_back(*resource, now());
    books.stale = false;
    if (pending.kind == Pending::Kind::claim || pending.kind == Pending::Kind::renewal) {
      on_claim(*resource, pending, told);
    } else {
      take_reading(*resource, told);
      for (const Return& part : pending.returns) {
        if (part.why == Return::Why::unspent) {
          resource->policy().returned += static_cast<std::uint64_t>(part.units);
        }
      }
      forget_if_empty(*resource);
    }
  }
  again(resource);
}

// Nothing of an in_flight claim runs out by itself while this process lives: where another copy of
// one may be applied, when it was given up or its units have gone back, the resource is remembered
// until that is over, and then looked at. The watch mostly tells before.
void Coordinator::expect_late_copies(Resource& resource, const Pending& pending) {
  Books& books = resource.books;
  if (pending.kind != Pending::Kind::claim || pending.sends < 2) return;
  if (books.limit.mode != Mode::in_flight) return;
  books.late_copies_until = clock_.steady_now() + kLateCopies;
  wake_at(resource, *books.late_copies_until);
}

void Coordinator::forget_if_empty(Resource& resource) {
  const Books& books = resource.books;
  if (aligned(books.limit.mode) || books.late_copies_until) return;
  if (!books.held.empty() || !books.left.empty() || !books.orphans.empty()) return;
  resource.remembered_until = 0;
}

void Coordinator::on_failure(const Shared& resource, const StoreError& error) {
  Books& books = resource->books;
  const Pending& pending = *books.pending;
  books.retry_at = clock_.steady_now() + backoff(pending.sends);
  wake_at(*resource, books.retry_at);
  switch (error.kind) {
    case StoreError::Kind::unknown:
      ++stats_.unknown;
      return;  // the identical transaction again
    case StoreError::Kind::lease_gone: {
      ++stats_.failed;
      const std::shared_ptr<LeaseSlot> lease =
          pending.claims.empty() ? nullptr : pending.claims.front().lease;
      for (const OwnKey& own : pending.old) books.orphans.push_back(own);
      expect_late_copies(*resource, pending);
      books.pending.reset();
      books.unanswered_since.reset();
      if (lease) leases_.gone(lease);
      return;
    }
    case StoreError::Kind::not_applied:
    case StoreError::Kind::lease_exists:
      ++stats_.failed;
      // A claim is thought over; what gives something back must not be forgotten.
      if (pending.kind == Pending::Kind::claim || pending.kind == Pending::Kind::refresh) {
        expect_late_copies(*resource, pending);
        books.pending.reset();
        books.unanswered_since.reset();
      }
      return;
  }
}

void Coordinator::on_claim(Resource& resource, Pending& pending, const TxnAnswer& answer) {
  Books& books = resource.books;
  const SteadyTime now = clock_.steady_now();
  const duration<double> took = now - pending.first_sent;
  books.txn_time = (books.txn_time + took) / 2;
  const auto bound = std::lower_bound(CoordinatorStats::kBounds.begin(),
                                      CoordinatorStats::kBounds.end(), took.count());
  ++stats_.claim_seconds[static_cast<std::size_t>(bound - CoordinatorStats::kBounds.begin())];
  stats_.claim_seconds_sum = stats_.claim_seconds_sum + took.count();

  const ClaimResult result = claim_result(answer, pending.claims.front());
  if (pending.sends > 1) {
    ++(result == ClaimResult::found_applied ? stats_.found_applied : stats_.found_absent);
  }
  expect_late_copies(resource, pending);
  const bool renewal = pending.kind == Pending::Kind::renewal;
  if (result == ClaimResult::granted && !renewal) {
    books.account.used += pending.claims.front().units();
    books.account.revision = answer.revision;
  }
  // Nobody has claimed while this one let others come first.
  if (!renewal && std::exchange(books.polite_until, std::nullopt)) {
    books.alone = result == ClaimResult::granted;
  }
  if (result != ClaimResult::conflict) {
    ++stats_.granted;
    books.conflicts = 0;
    for (Claim& claim : pending.claims) granted(resource, std::move(claim), pending.first_sent);
  }
  if (result == ClaimResult::granted && !renewal) return;
  take_reading(resource, answer);
  if (result != ClaimResult::conflict) return;
  if (renewal) {  // some of the old ones had been deleted; the others go
    for (const OwnKey& own : pending.old) books.orphans.push_back(own);
    return;
  }
  ++stats_.conflict;
  // At once with what is known now. If that is lost too, after full jitter, so that replicas do not
  // go on colliding; by then others will have claimed, so that the next one is lost but for what it
  // tells, and the one behind it goes at once again.
  if (++books.conflicts % 2 == 0) books.retry_at = now + backoff(books.conflicts / 2);
}

void Coordinator::granted(Resource& resource, Claim claim, SteadyTime first_sent) {
  Books& books = resource.books;
  resource.policy().claimed += static_cast<std::uint64_t>(claim.units());
  if (claim.lease->state == LeaseSlot::State::over) {
    resource.policy().lost += static_cast<std::uint64_t>(claim.units());
    return;
  }
  const Mode mode = books.limit.mode;
  auto batch = std::make_shared<Batch>();
  batch->claim = claim.number;
  batch->mode = mode;
  batch->fence = claim.lease->fence;
  if (aligned(mode)) batch->window_end = books.window.end();
  if (mode == Mode::sliding) batch->hold_until = first_sent + sliding_hold(books.limit.window);
  if (mode == Mode::in_flight) batch->pass_on_until = clock_.steady_now() + kTenure;
  batch->in_hand = claim.units();
  claim.batch = batch;
  books.held.emplace(claim.number, std::move(claim));
  tell(resource, now());
  resource.allowance()->bring(std::move(batch));
}

// The usage as the store has it. Keys of ours that belong to no claim we hold are late copies of
// transactions that we had found absent: nobody spends them, so they go.
void Coordinator::take_reading(Resource& resource, const TxnAnswer& answer) {
  Books& books = resource.books;
  const Reading reading = read_claims(answer, keys_.owner());
  books.account = reading.account;
  books.read_at = answer.revision;
  books.full = false;
  next_seq_ = std::max(next_seq_, reading.own_seq + 1);
  std::erase_if(books.left, [this](const auto& key) { return !leases_.ours(key.second); });
  for (const KeyValue* entry : reading.own) {
    if (!books.knows(entry->key) && leases_.ours(entry->lease)) {
      books.orphans.push_back({entry->key, entry->lease});
    }
  }
}

SteadyTime::duration Coordinator::backoff(int tries) {
  const auto most = milliseconds{5} * (1 << std::min(tries, 7));
  return std::chrono::microseconds{
      random_.below(static_cast<std::uint64_t>(std::chrono::microseconds{most}.count())) + 1};
}

void Coordinator::tell(Resource& resource, const Instant& now) {
  const Books& books = resource.books;
  if (counts_here(books.limit.mode)) return resource.allowance()->open(books.limit, now.wall);
  Allowance::State state;
  state.mode = books.limit.mode;
  state.window = books.window;
  state.limit = books.limit.units;
  state.used = books.account.used;
  state.full = books.full && !books.stale;
  state.store_down = books.store_down && own_share(books.limit) == 0;
  state.contested = books.account.others;
  state.above_share = books.in_use() > fair_share(books);
  state.low_water =
      low_water({.limit = books.limit.units, .rate = books.rate, .txn_time = books.txn_time});
  if (aligned(books.limit.mode)) {
    state.full_until = books.window.end();
    state.more_at = books.window.end();
    if (state.full) {
      resource.remembered_until = books.window.end().time_since_epoch().count();
    }
  } else if (books.limit.mode == Mode::sliding) {
    WallTime::duration wait{books.limit.window};
    if (!books.retiring.empty()) {
      wait = std::min<WallTime::duration>(wait, books.retiring.front().first - now.steady);
    }
    state.more_at = now.wall + wait;
  }
  resource.allowance()->set(state);
}

}  // namespace weir
