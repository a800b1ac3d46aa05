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
// The wall clock may be set, and replicas come and go.
constexpr seconds kLookAgain{1};

// Whether nothing that was claimed through the store before it went away counts any more.
bool may_begin_alone(const Books& books, const Instant& now) {
  switch (books.limit.mode) {
    case Mode::started:
    case Mode::until_done:
      return books.window.start >= books.down_at.wall;
    case Mode::sliding:
      return now.steady >=
             books.down_at.steady + books.limit.window + sliding_guard(books.limit.window);
    case Mode::in_flight:
      break;
  }
  return now.steady >= books.down_at.steady + kKeptTtl;
}

}  // namespace

// Nobody sends anything for a store that is away, but for one who asks whether it is back.
void Coordinator::store_went_down(SteadyTime now) {
  stats_.down_since = now.time_since_epoch().count();
  stats_.store_up = false;
  probe_at_ = now;
  for (const Shared& resource : table_.all()) again(resource);
}

void Coordinator::store_came_back() {
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
    for (auto& [number, claim] : resource->books.held) {
      const std::int64_t spent = claim.units() - resource->allowance()->write_off(claim.batch);
      resource->policy().lost += static_cast<std::uint64_t>(spent);  // the rest with the books
    }
    close_books(*resource);
    resource->books.open = false;
    again(resource);
  }
}

// Nobody waits for a store that does not answer: those in line are told, and units in hand go on.
void Coordinator::check_store(Resource& resource, const Instant& now) {
  Books& books = resource.books;
  if (books.store_down) return;
  if (!health_.down()) {
    if (!books.unanswered_since) return;
    const SteadyTime until = *books.unanswered_since + 2 * options_.store_timeout;
    if (now.steady < until) return wake_at(resource, until);
  }
  books.store_down = true;
  books.down_at = now;
  books.sharing = live_replicas_;
  books.own_place = own_index_;
  if (options_.on_store_failure == OnStoreFailure::allow) books.full = false;
  tell(resource, now);
}

// What this replica may use of a limit without the store: 0 if it is not known who shares it. Once
// the store is back the others' sessions may have ended, or not begun again: in a window that is
// shared already they still have their shares.
std::int64_t Coordinator::own_share(const Books& books) const {
  switch (options_.on_store_failure) {
    case OnStoreFailure::reject:
      return 0;
    case OnStoreFailure::share:
      return books.own_place ? share_of(books.limit.units, books.sharing, *books.own_place) : 0;
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
  if (!books.store_down && !goes_on) return false;
  const std::int64_t own = own_share(books);
  if (own == 0) {
    resource.allowance()->refuse(Refusal::store_unavailable, Allowance::Whom::everybody);
    return goes_on;
  }
  if (share && !goes_on && !may_begin_alone(books, now)) {
    resource.allowance()->refuse(Refusal::store_unavailable, Allowance::Whom::impatient);
    wake_at(resource, now.steady + kLookAgain);
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
  } else if (units > 0) {
    Claim claim;
    claim.number = next_number_++;
    claim.unrecorded = units;
    claim.lease = unrecorded_;
    granted(resource, std::move(claim), now.steady);
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
      until = replaced_at_->steady + kKeptTtl;
      break;
  }
  if (now.steady >= until) return std::nullopt;
  return until;
}

}  // namespace weir
