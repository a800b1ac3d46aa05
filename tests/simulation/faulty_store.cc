#include "tests/simulation/faulty_store.h"

#include <algorithm>
#include <utility>

namespace weir::sim {
namespace {

StoreError unknown() { return {StoreError::Kind::unknown, "no answer"}; }

}  // namespace

Duration FaultyStore::delay() {
  const Duration most =
      distance_.value_or(shared_.calm ? shared_.plan.calm_delay : shared_.plan.delay);
  return shared_.dice.between(most / 10, most);
}

bool FaultyStore::fault(double chance) {
  return !shared_.calm && chance > 0 && shared_.dice.chance(chance);
}

template <class T>
void FaultyStore::send(std::function<Answer<T>()> apply, Callback<T> told, Copies copies) {
  ++shared_.traffic;
  const MessageFaults& faults = shared_.plan.messages;
  const SteadyTime now = shared_.events.now();
  const bool away = now < std::max(away_until_, shared_.away_until);
  const bool lost = away || fault(faults.lost);
  const bool late = !lost && fault(faults.late);
  const bool mute = lost || late || fault(faults.reply_lost);
  const bool twice = !lost && copies == Copies::maybe_two && fault(faults.duplicate);
  if (shared_.plan.embedded && !mute && !twice) return told(apply());

  // The answer that is told is the first: the store's, or that there is none.
  auto open = std::make_shared<Callback<T>>(std::move(told));
  const auto tell = [this, open](Answer<T> answer) {
    deliver_([open, answer = std::move(answer)] {
      if (!*open) return;
      const Callback<T> callback = std::exchange(*open, nullptr);
      callback(answer);
    });
  };
  if (!away && fault(faults.not_applied)) {
    shared_.events.after(
        delay(), [tell] { tell(StoreError{StoreError::Kind::not_applied, "too many requests"}); });
    return;
  }
  if (shared_.bug != Bug::unknown_never_answered) {
    const bool reset = fault(faults.reset);
    const Duration until = reset ? shared_.dice.between(Duration{0}, 2 * delay()) : timeout_;
    shared_.events.after(until, [tell] { tell(unknown()); });
  }
  if (lost) return;
  const Duration way = late ? shared_.dice.between(timeout_, seconds{8}) : delay();
  shared_.events.after(way, [this, apply, tell, mute] {
    Answer<T> answer = apply();
    if (mute) return;
    shared_.events.after(delay(), [tell, answer = std::move(answer)] { tell(answer); });
  });
  if (twice) {
    const Duration again = way + shared_.dice.between(Duration{0}, seconds{5});
    shared_.events.after(again, [apply] { apply(); });
  }
}

bool FaultyStore::is_claim(const Txn& txn) {
  return !txn.then.empty() && std::holds_alternative<Put>(txn.then.back());
}

void FaultyStore::txn(Txn txn, Callback<TxnAnswer> callback) {
  Cause cause;
  for (const Op& op : txn.then) {
    const auto* put = std::get_if<Put>(&op);
    const auto place = put ? Judge::place_of(put->key) : std::nullopt;
    if (!place) continue;
    // One that is sent again is the same claim, whatever the limit is by now.
    cause.limit =
        first_sent_under_
            .try_emplace(put->key, limit_of_(place->range.substr(0, place->range.find(':'))))
            .first->second;
  }
  const Txn sent = txn;
  damage(txn);
  Callback<TxnAnswer> told = [this, sent, callback](Answer<TxnAnswer> answer) {
    callback(damaged(sent, std::move(answer)));
  };
  Shared& shared = shared_;  // copies may be applied after this replica is gone
  send<TxnAnswer>(
      [&shared, txn = std::move(txn), cause] {
        shared.judge.set_cause({Cause::Kind::expiry});
        shared.store.expire();
        shared.judge.set_cause(cause);
        Answer<TxnAnswer> result = unknown();
        shared.store.txn(txn, [&result](Answer<TxnAnswer> answer) { result = std::move(answer); });
        return result;
      },
      std::move(told));
}

// What is sent, changed.
void FaultyStore::damage(Txn& txn) const {
  switch (shared_.bug) {
    case Bug::no_range_compare:
      std::erase_if(txn.compares, [](const Compare& c) { return !c.range.end.empty(); });
      break;
    case Bug::mixed_resources:
      for (auto* ops : {&txn.then, &txn.otherwise}) {
        for (Op& op : *ops) {
          if (auto* read = std::get_if<Read>(&op)) {
            read->range = keys_under(read->range.key.substr(0, read->range.key.find(':')));
          }
        }
      }
      for (Compare& compare : txn.compares) {
        if (compare.range.end.empty()) continue;
        compare.range = keys_under(compare.range.key.substr(0, compare.range.key.find(':')));
      }
      break;
    case Bug::deletes_too_much:
      for (Op& op : txn.then) {
        auto* erase = std::get_if<Delete>(&op);
        if (!erase || txn.then.size() != 2) continue;
        erase->range = keys_under(erase->range.key.substr(0, erase->range.key.rfind('-') + 1));
      }
      break;
    default:
      break;
  }
}

// What is answered, changed.
Answer<TxnAnswer> FaultyStore::damaged(const Txn& sent, Answer<TxnAnswer> answer) const {
  auto* told = std::get_if<TxnAnswer>(&answer);
  switch (shared_.bug) {
    case Bug::unknown_as_granted:
      if (!told && std::get<StoreError>(answer).kind == StoreError::Kind::unknown &&
          is_claim(sent)) {
        return TxnAnswer{true, shared_.store.revision(), {}};
      }
      break;
    case Bug::conflict_as_granted:
      if (told && !told->succeeded && is_claim(sent)) told->succeeded = true;
      break;
    case Bug::reads_hide_a_claim:
      if (!told) break;
      for (OpAnswer& op : told->answers) {
        auto* read = std::get_if<ReadAnswer>(&op);
        if (read && !read->keys.empty()) read->keys.pop_back();
      }
      break;
    case Bug::lease_loss_hidden:
      if (!told && std::get<StoreError>(answer).kind == StoreError::Kind::lease_gone) {
        return StoreError{StoreError::Kind::not_applied, "not now"};
      }
      break;
    case Bug::revision_too_high:
      if (told) told->revision += 5;
      break;
    default:
      break;
  }
  return answer;
}

void FaultyStore::grant(LeaseId lease, seconds ttl, Callback<LeaseTerm> callback) {
  const bool aligned = ttl > seconds{60};
  if (shared_.bug == Bug::leases_never_end) ttl += std::chrono::hours{1};
  if (shared_.bug == Bug::aligned_lease_without_margin && aligned) ttl -= seconds{60};
  if (shared_.bug == Bug::sliding_lease_too_short && !aligned && ttl != seconds{15}) {
    ttl = seconds{2};
  }
  // Another copy would be one that somebody sends again, and nobody does under the same id.
  leases_.push_back(lease);
  Shared& shared = shared_;
  send<LeaseTerm>(
      [&shared, lease, ttl] {
        Answer<LeaseTerm> result = unknown();
        shared.judge.set_cause({Cause::Kind::expiry});
        shared.store.grant(lease, ttl,
                           [&result](Answer<LeaseTerm> answer) { result = std::move(answer); });
        return result;
      },
      std::move(callback), Copies::one);
}

void FaultyStore::keep_alive(LeaseId lease, Callback<LeaseTerm> callback) {
  kept_.insert(lease);
  Shared& shared = shared_;
  send<LeaseTerm>(
      [&shared, lease]() -> Answer<LeaseTerm> {
        if (shared.bug == Bug::keepalive_not_sent) return LeaseTerm{seconds{15}};
        Answer<LeaseTerm> result = unknown();
        shared.judge.set_cause({Cause::Kind::expiry});
        shared.store.keep_alive(
            lease, [&result](Answer<LeaseTerm> answer) { result = std::move(answer); });
        if (shared.bug == Bug::lease_loss_hidden) return LeaseTerm{seconds{15}};
        return result;
      },
      std::move(callback));
}

void FaultyStore::revoke(LeaseId lease, Callback<LeaseTerm> callback) {
  Shared& shared = shared_;
  send<LeaseTerm>(
      [&shared, lease] {
        Answer<LeaseTerm> result = unknown();
        shared.judge.set_cause({Cause::Kind::txn});
        shared.store.revoke(lease,
                            [&result](Answer<LeaseTerm> answer) { result = std::move(answer); });
        return result;
      },
      std::move(callback));
}

// Ends the watch at the store with the replica's own.
class FaultyStore::Subscription final : public Watch {
 public:
  std::shared_ptr<WatchHandler> handler;
  std::unique_ptr<Watch> watch;
};

std::unique_ptr<Watch> FaultyStore::watch(KeyRange range, Revision from, WatchHandler handler) {
  auto subscription = std::make_unique<Subscription>();
  subscription->handler = std::make_shared<WatchHandler>(std::move(handler));
  const std::weak_ptr<WatchHandler> weak = subscription->handler;
  watches_.push_back(weak);
  WatchHandler relay;
  // Order is kept: what is told later is delayed no less.
  auto last = std::make_shared<SteadyTime>();
  relay.events = [this, weak, last](Revision revision, std::span<const WatchEvent> events) {
    if (shared_.bug == Bug::watch_says_nothing) return;
    if (shared_.events.now() < std::max(away_until_, shared_.away_until)) {
      shared_.events.after(Duration{0}, [this, weak] {
        deliver_([weak] {
          const auto open = weak.lock();
          if (open) open->lost();
        });
      });
      return;
    }
    *last = std::max(*last, shared_.events.now() + delay());
    std::vector<WatchEvent> copy(events.begin(), events.end());
    shared_.events.at(*last, [this, weak, revision, copy = std::move(copy)] {
      deliver_([weak, revision, copy] {
        const auto open = weak.lock();
        if (open) open->events(revision, copy);
      });
    });
  };
  subscription->watch = shared_.store.watch(std::move(range), from, std::move(relay));
  return subscription;
}

void FaultyStore::lose_watches() {
  for (const auto& weak : std::exchange(watches_, {})) {
    deliver_([weak] {
      const auto open = weak.lock();
      if (open) open->lost();
    });
  }
}

LeaseId FaultyStore::lose_a_lease() {
  if (leases_.empty()) return 0;
  // One of the latest: older ones have mostly run out.
  const auto last = static_cast<std::int64_t>(leases_.size()) - 1;
  const auto chosen = shared_.dice.between(std::max<std::int64_t>(0, last - 3), last);
  const LeaseId lease = leases_[static_cast<std::size_t>(chosen)];
  shared_.judge.set_cause({Cause::Kind::expiry});
  shared_.store.expire();
  shared_.judge.set_cause({Cause::Kind::injected});
  shared_.store.revoke(lease, [](Answer<LeaseTerm>) {});
  return lease;
}

}  // namespace weir::sim
