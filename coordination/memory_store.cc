#include "coordination/memory_store.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace weir {
namespace {

using Kind = StoreError::Kind;

bool is_open(const KeyRange& range) { return range.end.size() == 1 && range.end[0] == '\0'; }

bool is_empty(const KeyRange& range) {
  return !range.end.empty() && !is_open(range) && range.end <= range.key;
}

bool contains(const KeyRange& range, std::string_view key) {
  if (range.end.empty()) return key == range.key;
  return key >= range.key && (is_open(range) || key < range.end);
}

template <class T>
bool compares(const T& left, Compare::Is is, const T& right) {
  switch (is) {
    case Compare::Is::equal:
      return left == right;
    case Compare::Is::not_equal:
      return left != right;
    case Compare::Is::less:
      return left < right;
    case Compare::Is::greater:
      return left > right;
  }
  return false;
}

bool holds_for(const Compare& compare, const KeyValue& key) {
  switch (compare.target) {
    case Compare::Target::version:
      return compares(key.version, compare.is, compare.number);
    case Compare::Target::create:
      return compares(key.create_revision, compare.is, compare.number);
    case Compare::Target::mod:
      return compares(key.mod_revision, compare.is, compare.number);
    case Compare::Target::lease:
      return compares(key.lease, compare.is, compare.number);
    case Compare::Target::value:
      return compares(key.value, compare.is, compare.value);
  }
  return false;
}

const std::string& key_of(const Op& op) {
  if (const auto* put = std::get_if<Put>(&op)) return put->key;
  if (const auto* read = std::get_if<Read>(&op)) return read->range.key;
  return std::get<Delete>(op).range.key;
}

// etcd refuses a key that is put twice, and one that is both put and deleted, in whatever order. It
// does not find out if the deleted range has no end: then the ops just run in order.
bool touches_a_key_twice(std::span<const Op> ops) {
  std::vector<std::string_view> puts;
  for (const Op& op : ops) {
    if (const auto* put = std::get_if<Put>(&op)) puts.push_back(put->key);
  }
  std::ranges::sort(puts);
  if (std::ranges::adjacent_find(puts) != puts.end()) return true;
  return std::ranges::any_of(ops, [&puts](const Op& op) {
    const auto* erase = std::get_if<Delete>(&op);
    return erase && !is_open(erase->range) &&
           std::ranges::any_of(
               puts, [erase](std::string_view key) { return contains(erase->range, key); });
  });
}

// What is wrong with the transaction whatever is stored, as etcd words it; both branches are looked
// at.
std::optional<StoreError> refusal(const Txn& txn) {
  if (std::max({txn.compares.size(), txn.then.size(), txn.otherwise.size()}) > kMaxOps) {
    return StoreError{Kind::not_applied, "too many operations in txn request"};
  }
  const auto no_key = [](const Op& op) { return key_of(op).empty(); };
  if (std::ranges::any_of(txn.compares, [](const Compare& c) { return c.range.key.empty(); }) ||
      std::ranges::any_of(txn.then, no_key) || std::ranges::any_of(txn.otherwise, no_key)) {
    return StoreError{Kind::not_applied, "key is not provided"};
  }
  if (touches_a_key_twice(txn.then) || touches_a_key_twice(txn.otherwise)) {
    return StoreError{Kind::not_applied, "duplicate key given in txn request"};
  }
  return std::nullopt;
}

StoreError lease_not_found() { return {Kind::lease_gone, "requested lease not found"}; }

}  // namespace

class MemoryStore::WatchHandle final : public Watch {
 public:
  explicit WatchHandle(std::shared_ptr<Watcher> watcher) : watcher_(std::move(watcher)) {}

 private:
  std::shared_ptr<Watcher> watcher_;
};

MemoryStore::MemoryStore(const Clock& clock) : MemoryStore(clock, Options{}) {}

MemoryStore::MemoryStore(const Clock& clock, Options options) : clock_(clock), options_(options) {}

void MemoryStore::txn(Txn txn, Callback<TxnAnswer> callback) {
  expire_due();
  if (auto refused = refusal(txn)) return answer<TxnAnswer>(callback, *std::move(refused));

  TxnAnswer result;
  result.succeeded =
      std::ranges::all_of(txn.compares, [this](const Compare& c) { return holds(c); });
  std::vector<Op>& branch = result.succeeded ? txn.then : txn.otherwise;
  if (auto missing = missing_lease(branch)) {
    return answer<TxnAnswer>(callback, *std::move(missing));
  }
  result.answers.reserve(branch.size());
  for (Op& op : branch) {
    result.answers.push_back(std::visit([this](auto& one) { return apply(one); }, op));
  }
  commit();
  result.revision = revision_;
  answer<TxnAnswer>(callback, std::move(result));
}

void MemoryStore::grant(LeaseId lease, std::chrono::seconds ttl, Callback<LeaseTerm> callback) {
  expire_due();
  if (lease <= 0 || ttl > kMaxTtl) {
    return answer<LeaseTerm>(callback, StoreError{Kind::not_applied, "bad lease id or TTL"});
  }
  ttl = std::max(ttl, kMinTtl);
  const auto [granted, is_new] = leases_.try_emplace(lease, Lease{ttl, {}, {}});
  if (!is_new) {
    return answer<LeaseTerm>(callback, StoreError{Kind::lease_exists, "lease already exists"});
  }
  set_expiry(granted, clock_.steady_now() + ttl);
  answer<LeaseTerm>(callback, LeaseTerm{ttl});
}

void MemoryStore::keep_alive(LeaseId lease, Callback<LeaseTerm> callback) {
  expire_due();
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return answer<LeaseTerm>(callback, LeaseTerm{});
  const std::chrono::seconds ttl = found->second.ttl;
  set_expiry(found, clock_.steady_now() + ttl);
  answer<LeaseTerm>(callback, LeaseTerm{ttl});
}

void MemoryStore::revoke(LeaseId lease, Callback<LeaseTerm> callback) {
  expire_due();
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return answer<LeaseTerm>(callback, lease_not_found());
  end_lease(found);
  answer<LeaseTerm>(callback, LeaseTerm{});
}

std::unique_ptr<Watch> MemoryStore::watch(KeyRange range, Revision from, WatchHandler handler) {
  if (from <= 0) from = revision_ + 1;
  auto watcher = std::make_shared<Watcher>(std::move(range), from, std::move(handler));
  if (from <= compacted_ || is_empty(watcher->range)) {
    deliveries_.push_back({watcher, 0, {}});
  } else {
    auto change = std::ranges::lower_bound(history_, from, {},
                                           [](const Change& c) { return c.key->mod_revision; });
    std::vector<Change> together;
    while (change != history_.end()) {
      const Revision revision = change->key->mod_revision;
      together.clear();
      for (; change != history_.end() && change->key->mod_revision == revision; ++change) {
        together.push_back(*change);
      }
      enqueue(watcher, together);
    }
    std::erase_if(watchers_, [](const auto& other) { return other.expired(); });
    watchers_.push_back(watcher);
  }
  auto handle = std::make_unique<WatchHandle>(std::move(watcher));
  deliver();
  return handle;
}

std::optional<SteadyTime> MemoryStore::next_expiry() const {
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->first;
}

void MemoryStore::expire() {
  expire_due();
  deliver();
}

void MemoryStore::rearm_leases(std::chrono::seconds extra) {
  const SteadyTime now = clock_.steady_now();
  for (auto lease = leases_.begin(); lease != leases_.end(); ++lease) {
    set_expiry(lease, now + lease->second.ttl + extra);
  }
}

void MemoryStore::compact(Revision revision) {
  compacted_ = std::max(compacted_, std::min(revision, revision_));
  while (!history_.empty() && history_.front().key->mod_revision <= compacted_) {
    history_.pop_front();
  }
}

std::pair<MemoryStore::Keys::const_iterator, MemoryStore::Keys::const_iterator> MemoryStore::find(
    const KeyRange& range) const {
  if (range.end.empty()) return keys_.equal_range(range.key);
  const auto first = keys_.lower_bound(range.key);
  if (is_open(range)) return {first, keys_.end()};
  if (is_empty(range)) return {first, first};
  return {first, keys_.lower_bound(range.end)};
}

bool MemoryStore::holds(const Compare& compare) const {
  const auto [first, last] = find(compare.range);
  if (first == last) {
    return compare.target != Compare::Target::value && holds_for(compare, KeyValue{});
  }
  return std::all_of(first, last, [&](const auto& key) { return holds_for(compare, *key.second); });
}

std::optional<StoreError> MemoryStore::missing_lease(std::span<const Op> ops) const {
  for (const Op& op : ops) {
    const auto* put = std::get_if<Put>(&op);
    if (put && put->lease != 0 && !leases_.contains(put->lease)) return lease_not_found();
  }
  return std::nullopt;
}

OpAnswer MemoryStore::apply(const Read& read) {
  const auto [first, last] = find(read.range);
  ReadAnswer result;
  result.count = std::distance(first, last);
  if (read.count_only) return result;
  const auto wanted = read.limit > 0 ? std::min(read.limit, result.count) : result.count;
  result.keys.reserve(static_cast<std::size_t>(wanted));
  for (auto key = first; std::ssize(result.keys) < wanted; ++key) {
    result.keys.push_back(*key->second);
  }
  return result;
}

OpAnswer MemoryStore::apply(Put& put) {
  const auto [stored, is_new] = keys_.try_emplace(put.key);
  const Revision now = revision_ + 1;
  KeyValue key{std::move(put.key), std::move(put.value), now, now, 1, put.lease};
  if (!is_new) {
    const KeyValue& before = *stored->second;
    key.create_revision = before.create_revision;
    key.version = before.version + 1;
    detach(before);
  }
  if (key.lease != 0) leases_.find(key.lease)->second.keys.insert(stored->first);
  stored->second = std::make_shared<const KeyValue>(std::move(key));
  changes_.push_back({WatchEvent::Kind::put, stored->second});
  return PutAnswer{};
}

OpAnswer MemoryStore::apply(const Delete& erased) {
  auto [key, last] = find(erased.range);
  DeleteAnswer result;
  for (; key != last; ++result.deleted) key = erase(key);
  return result;
}

MemoryStore::Keys::const_iterator MemoryStore::erase(Keys::const_iterator key) {
  detach(*key->second);
  KeyValue deleted;
  deleted.key = key->first;
  deleted.mod_revision = revision_ + 1;
  changes_.push_back(
      {WatchEvent::Kind::deleted, std::make_shared<const KeyValue>(std::move(deleted))});
  return keys_.erase(key);
}

void MemoryStore::detach(const KeyValue& key) {
  if (key.lease != 0) leases_.find(key.lease)->second.keys.erase(key.key);
}

void MemoryStore::end_lease(Leases::iterator lease) {
  // Erasing a key takes it out of the lease, and the lease's name for it is the key itself.
  while (!lease->second.keys.empty()) erase(keys_.find(*lease->second.keys.begin()));
  expiries_.erase({lease->second.expiry, lease->first});
  leases_.erase(lease);
  commit();
}

void MemoryStore::expire_due() {
  if (expiries_.empty()) return;
  const SteadyTime now = clock_.steady_now();
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    end_lease(leases_.find(expiries_.begin()->second));
  }
}

void MemoryStore::set_expiry(Leases::iterator lease, SteadyTime expiry) {
  expiries_.erase({lease->second.expiry, lease->first});
  lease->second.expiry = expiry;
  expiries_.emplace(expiry, lease->first);
}

void MemoryStore::commit() {
  if (changes_.empty()) return;
  ++revision_;
  for (const auto& weak : watchers_) {
    const auto watcher = weak.lock();
    if (watcher && revision_ >= watcher->from) enqueue(watcher, changes_);
  }
  std::ranges::move(changes_, std::back_inserter(history_));
  changes_.clear();
  if (history_.size() > options_.history) {  // a revision is kept whole or not at all
    compact(history_[history_.size() - options_.history - 1].key->mod_revision);
  }
}

void MemoryStore::enqueue(const std::shared_ptr<Watcher>& watcher,
                          std::span<const Change> changes) {
  std::vector<WatchEvent> events;
  for (const Change& change : changes) {
    if (contains(watcher->range, change.key->key)) events.push_back({change.kind, *change.key});
  }
  if (events.empty()) return;
  deliveries_.push_back({watcher, events.front().key.mod_revision, std::move(events)});
}

template <class T>
void MemoryStore::answer(const Callback<T>& callback, Answer<T> answer) {
  const bool was_calling_out = std::exchange(calling_out_, true);
  if (callback) callback(std::move(answer));
  calling_out_ = was_calling_out;
  deliver();
}

void MemoryStore::deliver() {
  if (calling_out_) return;
  calling_out_ = true;
  while (!deliveries_.empty()) {
    const Delivery next = std::move(deliveries_.front());
    deliveries_.pop_front();
    // Held while its handler runs, which may destroy the watch.
    const auto watcher = next.watcher.lock();
    if (!watcher) continue;
    const WatchHandler& handler = watcher->handler;
    if (next.events.empty()) {
      if (handler.lost) handler.lost();
    } else if (handler.events) {
      handler.events(next.revision, next.events);
    }
  }
  calling_out_ = false;
}

}  // namespace weir
