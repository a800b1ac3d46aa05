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

// Units of in_flight that come back are handed on for this long before other replicas get their
// turn.
constexpr seconds kTenure{1};
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

bool aligned(Mode mode) { return mode == Mode::started || mode == Mode::until_done; }

// What a sliding unit's use may take to reach the upstream, more or less: a window is counted from
// arrival to arrival there.
SteadyTime::duration sliding_guard(seconds window) {
  return std::max<milliseconds>(milliseconds{10}, milliseconds{window} / 500);
}

}  // namespace

void Coordinator::turn(const Shared& resource) {
  Books& books = resource->books;
  const Instant now = this->now();
  roll(*resource, now);
  const Allowance::Demand demand = resource->allowance()->look();
  resource->policy().lost += static_cast<std::uint64_t>(demand.lost);
  sample_rate(*resource, demand, now);
  note_returns(*resource, demand, now);
  withdraw_idle(*resource, demand, now);
  check_store(*resource, now);
  if (books.pending && books.pending->under_way) return;
  if (now.steady < books.retry_at) {
    wake_at(*resource, books.retry_at);
  } else if (books.pending) {
    resend(resource);
  } else if (!give_back(resource)) {
    // A store that was down is asked for its own sake, so that the next request finds it up.
    if ((books.stale && demand.waiting > 0) || books.store_down) {
      Pending refresh{.kind = Pending::Kind::refresh, .txn = read_txn(books.claims)};
      send(resource, std::move(refresh));
    } else if (!stopping_) {
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
  if (books.limit.units != limit.units) books.full = false;
  books.limit = limit;
  if (same) return;
  close_books(resource);
  books.open = true;
  books.window = window;
  books.claims = keys_.claims_of(resource.policy().name(), resource.name(), limit.mode, window);
  tell(resource, now);
}

// What was claimed in a window that is over runs out by itself. in_flight has no such end: its keys
// are deleted when a reload changes the mode.
void Coordinator::close_books(Resource& resource) {
  Books& books = resource.books;
  Allowance& allowance = *resource.allowance();
  std::vector<OwnKey> kept_alive;
  for (auto& [number, claim] : books.held) {
    resource.policy().lost += static_cast<std::uint64_t>(allowance.write_off(claim.batch));
    if (claim.lease->kind == LeaseSlot::Kind::in_flight) {
      for (std::string& key : claim.keys) kept_alive.push_back({std::move(key), claim.lease->id});
    }
  }
  while (!kept_alive.empty()) {
    const std::size_t some = std::min(kept_alive.size(), kMaxKeys);
    const std::size_t rest = kept_alive.size() - some;
    store_.txn(delete_txn(books.claims, std::span{kept_alive}.subspan(rest)),
               [](Answer<TxnAnswer>) {});
    kept_alive.resize(rest);
  }
  books.held.clear();
  books.retiring.clear();
  books.returns.clear();
  books.orphans.clear();
  if (books.pending && books.pending->under_way) --under_way_;
  books.pending.reset();
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
  if (got > 0) resource.books.returns.push_back({claim.number, got, Return::Why::unspent});
  return got;
}

// Units that have had their time: in_flight ones that came back when others should have their turn,
// sliding ones held too long, or used a window ago.
void Coordinator::note_returns(Resource& resource, const Allowance::Demand& demand,
                               const Instant& now) {
  Books& books = resource.books;
  for (const auto& batch : demand.surplus) {
    if (books.held.contains(batch->claim)) {
      books.returns.push_back({batch->claim, 1, Return::Why::ended});
    }
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
      books.returns.push_back({claim->first, claim->second.units(), Return::Why::ended});
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

// Nobody waits for a store that does not answer: those in line are told, and units in hand go on.
void Coordinator::check_store(Resource& resource, const Instant& now) {
  Books& books = resource.books;
  if (!books.unanswered_since || books.store_down) return;
  const SteadyTime until = *books.unanswered_since + 2 * options_.store_timeout;
  if (now.steady < until) return wake_at(resource, until);
  books.store_down = true;
  tell(resource, now);
  resource.allowance()->refuse(Refusal::store_unavailable, Allowance::Whom::everybody);
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

void Coordinator::claim(const Shared& resource, const Allowance::Demand& demand,
                        const Instant& now) {
  Books& books = resource->books;
  Allowance& allowance = *resource->allowance();
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
  std::shared_ptr<LeaseSlot> lease;
  if (units > 0) {
    lease =
        leases_.get(books.limit.mode, books.window, now, [this, weak = resource->weak_from_this()] {
          const Shared shared = weak.lock();
          if (!shared) return;
          shared->books.unanswered_since.reset();
          again(shared);
        });
  }
  if (facts.used >= facts.limit || (units > 0 && !lease)) {
    if (!books.full) {
      ++stats_.short_of;
      books.full = true;
    }
    tell(*resource, now);
    allowance.refuse(Refusal::limit, Allowance::Whom::impatient);
    if (demand.waiting > 0 && aligned(books.limit.mode)) {
      wake_at(*resource, now.steady + std::min<SteadyTime::duration>(books.window.end() - now.wall,
                                                                     kLookAgain));
    }
    return;
  }
  books.full = false;
  tell(*resource, now);
  if (units == 0) return;
  if (lease->state != LeaseSlot::State::ready) {
    if (!books.unanswered_since) books.unanswered_since = now.steady;
    return wake_at(*resource, *books.unanswered_since + 2 * options_.store_timeout);
  }
  Pending pending{.kind = Pending::Kind::claim};
  pending.claim.number = next_number_++;
  pending.claim.lease = lease;
  pending.claim.at = now.wall;
  if (claim_quantum(books.limit.units) > 1) {
    pending.claim.units_per_key = units;
    units = 1;
  }
  for (std::int64_t i = 0; i < std::min<std::int64_t>(units, kMaxKeys); ++i) {
    pending.claim.keys.push_back(
        keys_.claim(books.claims, books.limit.mode, lease->window.start, next_seq_++));
  }
  pending.txn = claim_txn(books.claims, books.account, pending.claim);
  resource->remembered_until = aligned(books.limit.mode)
                                   ? books.window.end().time_since_epoch().count()
                                   : WallTime::max().time_since_epoch().count();
  send(resource, std::move(pending));
}

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
  store_.txn(pending.txn, [this, resource, number = pending.number](Answer<TxnAnswer> answer) {
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
    books.store_down = false;
    books.stale = false;
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
  state.store_down = books.store_down;
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
