// What the coordinator does when the store does not answer, and when it is not the one it was.

#include <limits>
#include <utility>

#include "coordination/claim_size.h"
#include "coordination/coordinator.h"
#include "coordination/ledger.h"

namespace weir {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kProbeEvery{400};
// Within this time of each other replicas notice that the store is away, or back.
constexpr seconds kNoticed{5};
// And by then they have all joined again.
constexpr seconds kRejoined{15};
// The wall clock may be set, and replicas come and go.
constexpr seconds kLookAgain{1};

}  // namespace

// Nothing is claimed from a store that is away; one probe asks for all whether it is back. Who is
// live is what was known before: in a store that was away for long, everybody's key has gone.
void Coordinator::store_went_down(SteadyTime now) {
  stats_.down_since = now.time_since_epoch().count();
  stats_.store_up = false;
  probe_at_ = now;
  if (!down_at_ || now >= back_at_.steady + kRejoined) {
    sharers_ = live_replicas_;
    own_place_ = own_index_;
  }
  down_at_ = this->now();
  for (const Shared& resource : table_.all()) again(resource);
}

void Coordinator::store_came_back() {
  back_at_ = now();
  const SteadyTime::rep since = stats_.down_since;
  stats_.degraded_before += clock_.steady_now().time_since_epoch().count() - since;
  stats_.store_up = true;
  for (const Shared& resource : table_.all()) again(resource);
}

std::chrono::duration<double> Coordinator::degraded() const {
  SteadyTime::rep total = stats_.degraded_before;
  if (!stats_.store_up) {
    total += clock_.steady_now().time_since_epoch().count() - stats_.down_since;
  }
  return SteadyTime::duration{total};
}

void Coordinator::probe() {
  probe_at_ = SteadyTime::max();
  health_.txn(read_txn(keys_.own_replica()), [this](Answer<TxnAnswer>) {
    const auto most = static_cast<std::uint64_t>(kProbeEvery.count());
    probe_at_ = clock_.steady_now() + kProbeEvery / 4 + milliseconds{random_.below(most)};
    wake_();
  });
}

void Coordinator::store_replaced() {
  replaced_at_ = now();
  stats_.leases_lost += leases_.forget();
  for (const Shared& resource : table_.all()) {
    Books& books = resource->books;
    for (auto& [number, claim] : books.held) {
      resource->allowance()->write_off(claim.batch);
      resource->policy().lost += static_cast<std::uint64_t>(claim.units());
    }
    books.held.clear();
    close_books(*resource);
    books.left.clear();
    books.open = false;
    again(resource);
  }
}

// Nobody waits for a store that does not answer: those in line are told, and units in hand go on.
void Coordinator::check_store(Resource& resource, const Instant& now) {
  Books& books = resource.books;
  if (books.store_down) {
    if (!health_.down() && !books.pending) store_is_back(resource, now);
    return;
  }
  if (!health_.down()) {
    if (!books.unanswered_since) return;
    const SteadyTime until = *books.unanswered_since + 2 * options_.store_timeout;
    if (now.steady < until) return wake_at(resource, until);
  }
  books.store_down = true;
  if (options_.on_store_failure == OnStoreFailure::allow) books.full = false;
  tell(resource, now);
}

// Whether nothing that was claimed through the store before it went away counts any more, by
// whoever noticed later.
bool Coordinator::may_begin_alone(const Books& books, const Instant& now) const {
  switch (books.limit.mode) {
    case Mode::started:
    case Mode::until_done:
      return books.window.start >= down_at_->wall + kNoticed;
    case Mode::sliding:
      return now.steady >= down_at_->steady + books.limit.window + kNoticed;
    case Mode::in_flight:
      break;
  }
  return now.steady >= down_at_->steady + options_.kept_ttl;
}

// Whether others may have taken units without the store that still count: then what this replica
// has, from the store or not, must stay within its share.
bool Coordinator::keeps_to_share(const Books& books, const Instant& now) const {
  if (options_.on_store_failure != OnStoreFailure::share || !down_at_) return false;
  switch (books.limit.mode) {
    case Mode::started:
    case Mode::until_done:
      return down_at_->wall <= books.window.start && books.window.start < back_at_.wall + kNoticed;
    case Mode::sliding:
      return now.steady < back_at_.steady + books.limit.window + kNoticed;
    case Mode::in_flight:
      break;
  }
  return books.unrecorded() > 0 || now.steady < back_at_.steady + options_.kept_ttl;
}

// What was not claimed meanwhile is read when somebody asks for it.
void Coordinator::store_is_back(Resource& resource, const Instant& now) {
  Books& books = resource.books;
  books.unanswered_since.reset();
  books.store_down = books.full = false;
  books.stale = true;
  if (options_.on_store_failure == OnStoreFailure::allow) {
    for (auto& [number, claim] : books.held) withdraw(resource, claim, claim.unrecorded);
  }
  tell(resource, now);
}

// What this replica may use of a limit without the store: 0 if it is not known who shares it.
std::int64_t Coordinator::own_share(const Limit& limit) const {
  switch (options_.on_store_failure) {
    case OnStoreFailure::reject:
      return 0;
    case OnStoreFailure::share:
      return own_place_ ? share_of(limit.units, sharers_, *own_place_) : 0;
    case OnStoreFailure::allow:
      break;
  }
  return std::numeric_limits<std::int32_t>::max();
}

// Without the store: claims that nobody else knows of, within this replica's share. They begin when
// nothing that was claimed through the store counts any more, and a window in which there are some
// is ended with them, since other replicas' are not known. True: that is so, whether the store is
// back or not.
bool Coordinator::claim_alone(Resource& resource, const Allowance::Demand& demand,
                              const Instant& now) {
  Books& books = resource.books;
  std::erase_if(books.held, [](const auto& claim) { return claim.second.units() == 0; });
  const bool share = options_.on_store_failure == OnStoreFailure::share;
  const std::int64_t have = books.unrecorded();
  const bool goes_on = share && aligned(books.limit.mode) && have > 0;
  if ((!books.store_down && !goes_on) || stopping_) return goes_on;
  const std::int64_t own = own_share(books.limit);
  if (own == 0) {
    resource.allowance()->refuse(Refusal::store_unavailable, Allowance::Whom::everybody);
    return goes_on;
  }
  if (!health_.down() && !goes_on) return false;  // about to be known here too
  if (share && !goes_on && !may_begin_alone(books, now)) {
    resource.allowance()->refuse(Refusal::store_unavailable, Allowance::Whom::impatient);
    resource.allowance()->refuse_excess();
    if (demand.waiting > 0) wake_at(resource, now.steady + kLookAgain);
    return false;
  }
  std::int64_t used = have;
  // Those that were sent before, and whose claims are lost, are being served all the same.
  if (books.limit.mode == Mode::in_flight) used = std::max(used, demand.out + demand.in_hand);
  const std::int64_t units = claim_size({.limit = own,
                                         .used = used,
                                         .waiting = static_cast<std::int64_t>(demand.waiting),
                                         .in_hand = demand.in_hand,
                                         .held = have,
                                         .rate = books.rate,
                                         .window_left = duration<double>(books.limit.window)});
  if (used >= own) {
    full(resource, demand, now);
    return goes_on;
  }
  if (std::exchange(books.full, false)) tell(resource, now);
  if (units > 0) {
    Claim claim;
    claim.number = next_number_++;
    claim.unrecorded = units;
    claim.lease = unrecorded_;
    granted(resource, std::move(claim), now.steady);
    again(resource.shared_from_this());
  }
  return goes_on;
}

// The store was replaced, and what was claimed in the old one may still count: until then.
std::optional<SteadyTime> Coordinator::closed_until(const Books& books, const Instant& now) const {
  if (!replaced_at_) return std::nullopt;
  SteadyTime until{};
  switch (books.limit.mode) {
    case Mode::started:
    case Mode::until_done:
      if (books.window.start <= replaced_at_->wall) until = now.steady + kLookAgain;
      break;
    case Mode::sliding:
      until = replaced_at_->steady + books.limit.window + sliding_guard(books.limit.window);
      break;
    case Mode::in_flight:
      until = replaced_at_->steady + options_.kept_ttl;
      break;
  }
  if (now.steady >= until) return std::nullopt;
  return until;
}

}  // namespace weir
