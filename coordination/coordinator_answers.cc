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
    books.stale = false;
    if (std::exchange(books.store_down, false)) {
      books.full = false;
      if (options_.on_store_failure == OnStoreFailure::allow) {
        for (auto& [id, claim] : books.held) withdraw(*resource, claim, claim.unrecorded);
      }
    }
    if (pending.kind == Pending::Kind::claim) {
      on_claim(*resource, pending, told);
    } else {
      take_reading(*resource, told);
      for (const Return& part : pending.returns) {
        if (part.why == Return::Why::unspent) {
          resource->policy().returned += static_cast<std::uint64_t>(part.units);
        }
      }
      if (books.held.empty() && !aligned(books.limit.mode)) resource->remembered_until = 0;
    }
  }
  again(resource);
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
          pending.kind == Pending::Kind::claim ? pending.claim.lease : nullptr;
      books.pending.reset();
      if (lease) leases_.gone(lease);
      return;
    }
    case StoreError::Kind::not_applied:
    case StoreError::Kind::lease_exists:
      ++stats_.failed;
      // A claim is thought over; a return must not be forgotten.
      if (pending.kind != Pending::Kind::give_back) books.pending.reset();
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

  const ClaimResult result = claim_result(answer, pending.claim);
  if (pending.sends > 1) {
    ++(result == ClaimResult::found_applied ? stats_.found_applied : stats_.found_absent);
  }
  if (result == ClaimResult::granted) {
    books.account.used += pending.claim.units();
    books.account.revision = answer.revision;
  }
  if (result != ClaimResult::conflict) {
    ++stats_.granted;
    books.conflicts = 0;
    granted(resource, std::move(pending.claim), pending.first_sent);
  }
  if (result == ClaimResult::granted) return;
  take_reading(resource, answer);
  if (result == ClaimResult::found_applied) return;
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
  for (const KeyValue* entry : reading.own) {
    const bool held = std::any_of(books.held.begin(), books.held.end(), [&](const auto& claim) {
      const auto& keys = claim.second.keys;
      return std::find(keys.begin(), keys.end(), entry->key) != keys.end();
    });
    if (!held && leases_.ours(entry->lease)) books.orphans.push_back({entry->key, entry->lease});
  }
}

SteadyTime::duration Coordinator::backoff(int tries) {
  const auto most = milliseconds{5} * (1 << std::min(tries, 7));
  return std::chrono::microseconds{
      random_.below(static_cast<std::uint64_t>(std::chrono::microseconds{most}.count())) + 1};
}

void Coordinator::tell(Resource& resource, const Instant& now) {
  const Books& books = resource.books;
  Allowance::State state;
  state.mode = books.limit.mode;
  state.window = books.window;
  state.limit = books.limit.units;
  state.used = books.account.used;
  state.full = books.full && !books.stale;
  state.store_down = books.store_down && own_share(books) == 0;
  state.contested = books.account.others;
  state.low_water =
      low_water({.limit = books.limit.units, .rate = books.rate, .txn_time = books.txn_time});
  if (aligned(books.limit.mode)) {
    state.full_until = books.window.end();
    state.more_at = books.window.end();
    if (state.full) {
      resource.remembered_until = books.window.end().time_since_epoch().count();
    }
  } else if (books.limit.mode == Mode::sliding) {
    state.more_at = now.wall + (books.retiring.empty() ? WallTime::duration{books.limit.window}
                                                       : books.retiring.front().first - now.steady);
  }
  resource.allowance()->set(state);
}

}  // namespace weir
