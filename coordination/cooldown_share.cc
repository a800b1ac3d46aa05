#include "coordination/cooldown_share.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

using std::chrono::ceil;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr milliseconds kRetry{500};
constexpr seconds kLeaseMargin{60};
constexpr std::size_t kMostUnderWay = 16;
// While the store is away; what is beyond stays with this process.
constexpr std::size_t kMostPending = 40'000;

}  // namespace

SteadyTime CooldownShare::soon() {
  const auto most = static_cast<std::uint64_t>(kRetry.count());
  return clock_.steady_now() + milliseconds{random_.below(most) + 1};
}

void CooldownShare::run(SteadyTime now) {
  if (read_at_) watch_.reset();
  if (read_at_ && now >= *read_at_) read();
  take_changes();
  const std::int64_t minute = ceil<minutes>(clock_.wall_now().time_since_epoch()).count();
  leases_.erase(leases_.begin(), leases_.lower_bound(minute));
  for (auto next = pending_.begin(); next != pending_.end() && under_way_ < kMostUnderWay;) {
    const auto one = next++;  // which may be over at once
    if (!one->second.under_way && one->second.due <= now) send(one->first, one->second);
  }
}

std::optional<SteadyTime> CooldownShare::next_due() const {
  std::optional<SteadyTime> due = read_at_;
  if (under_way_ >= kMostUnderWay) return due;
  for (const auto& [key, pending] : pending_) {
    if (pending.under_way || pending.due == SteadyTime::max()) continue;
    due = std::min(due.value_or(SteadyTime::max()), pending.due);
  }
  return due;
}

void CooldownShare::take_changes() {
  for (const CooldownMemory::Change& change : memory_.take_changes()) {
    if (pending_.size() >= kMostPending && !pending_.contains(change.key)) continue;
    Pending& pending = pending_[change.key];
    pending.cleared_by = change.cleared_by;
    pending.changed = true;
  }
}

void CooldownShare::start_over() {
  for (const auto& [key, stored] : stored_) pending_[key].changed = true;
  stored_.clear();
  seen_ = 0;
  leases_.clear();
  read_at_ = SteadyTime{};
}

void CooldownShare::read() {
  read_at_.reset();
  Txn txn;
  txn.then.push_back(Read{keys_under(keys_.all_cooldowns())});
  store_.txn(std::move(txn), [this](Answer<TxnAnswer> answer) {
    const auto* told = std::get_if<TxnAnswer>(&answer);
    told ? on_read(*told) : void(read_at_ = soon());
  });
}

// What happens after the revision that was read is watched, so nothing is missed between.
void CooldownShare::on_read(const TxnAnswer& answer) {
  const auto before = std::exchange(stored_, {});
  seen_ = answer.revision;
  for (const KeyValue& entry : std::get<ReadAnswer>(answer.answers.front()).keys) take(entry);
  for (const auto& [key, stored] : before) {
    if (!stored.value.empty() && !stored_.contains(key)) gone(key);
  }
  watch_ = store_.watch(keys_under(keys_.all_cooldowns()), answer.revision + 1,
                        {[this](Revision revision, std::span<const WatchEvent> events) {
                           on_events(revision, events);
                         },
                         [this] { read_at_ = soon(); }});
}

void CooldownShare::on_events(Revision revision, std::span<const WatchEvent> events) {
  seen_ = std::max(seen_, revision);
  for (const WatchEvent& event : events) {
    if (event.kind == WatchEvent::Kind::put) {
      take(event.key);
    } else if (const auto key = keys_.parse_cooldown(event.key.key)) {
      const auto known = stored_.find(*key);
      if (known != stored_.end() && known->second.revision > event.key.mod_revision) continue;
      gone(*key);
      stored_.erase(*key);
    }
  }
}

// What another wrote, or we did. A failure before a success that is still to be told is no news.
void CooldownShare::take(const KeyValue& entry) {
  const auto key = keys_.parse_cooldown(entry.key);
  const auto record = read_cooldown(entry.value);
  if (!key || !record) return;
  Stored& stored = stored_[*key];
  if (stored.revision >= entry.mod_revision) return;
  stored = {entry.mod_revision, entry.value};
  const auto pending = pending_.find(*key);
  if (pending != pending_.end() && pending->second.cleared_by) {
    if (record->last <= *pending->second.cleared_by) return;
    pending->second.cleared_by.reset();
  }
  memory_.learn(*key, *record);
}

// A failure here that is still to be told outlives a success elsewhere.
void CooldownShare::gone(const CooldownKey& key) {
  if (!pending_.contains(key)) memory_.forget(key);
}

void CooldownShare::send(const CooldownKey& key, Pending& pending) {
  pending.changed = false;
  const auto kept = memory_.find(key);
  if (kept) {
    put(key, pending, *kept);
  } else if (pending.cleared_by) {
    clear(key, pending);
  } else {
    pending_.erase(key);
  }
}

void CooldownShare::put(const CooldownKey& key, Pending& pending,
                        const CooldownMemory::Kept& kept) {
  const std::string value = cooldown_value(kept.record);
  const auto stored = stored_.find(key);
  if (stored != stored_.end() && stored->second.value == value) {
    pending_.erase(key);
    return;
  }
  const WallTime useless = kept.record.not_before + kept.beyond;
  const std::int64_t bucket = ceil<minutes>(useless.time_since_epoch()).count() + 1;
  pending.due = SteadyTime::max();  // until the lease is answered for, which may be at once
  const auto lease = lease_until(bucket);
  if (!lease) return;
  transact(key, pending, Put{keys_.cooldown(key), value, *lease}, bucket);
}

void CooldownShare::clear(const CooldownKey& key, Pending& pending) {
  const auto stored = stored_.find(key);
  const bool there = stored != stored_.end() && !stored->second.value.empty();
  // One that is not known to be there is looked for: it may be on its way to us.
  transact(key, pending,
           there ? std::optional<Op>{Delete{{keys_.cooldown(key), ""}}} : std::nullopt, 0);
}

// Writes only over what is known, and otherwise reads; so it does without an op.
void CooldownShare::transact(const CooldownKey& key, Pending& pending, std::optional<Op> op,
                             std::int64_t lease_bucket) {
  const KeyRange range{keys_.cooldown(key), ""};
  Txn txn;
  const auto stored = stored_.find(key);
  const bool there = stored != stored_.end() && !stored->second.value.empty();
  std::string written;
  if (op) {
    if (const auto* put = std::get_if<Put>(&*op)) written = put->value;
    txn.compares.push_back(
        {range, Compare::Target::mod, Compare::Is::equal, there ? stored->second.revision : 0});
    txn.then.push_back(*std::move(op));
    txn.otherwise.push_back(Read{range});
  } else {
    txn.then.push_back(Read{range});
  }
  pending.under_way = true;
  ++under_way_;
  store_.txn(std::move(txn), [this, key, written, lease_bucket](Answer<TxnAnswer> answer) {
    on_answer(key, written, lease_bucket, answer);
  });
}

void CooldownShare::on_answer(const CooldownKey& key, const std::string& written,
                              std::int64_t lease_bucket, const Answer<TxnAnswer>& answer) {
  --under_way_;
  Pending& pending = pending_[key];
  pending.under_way = false;
  const auto* told = std::get_if<TxnAnswer>(&answer);
  if (!told) return on_failure(pending, std::get<StoreError>(answer), lease_bucket);
  pending.due = clock_.steady_now();
  if (const auto* read = std::get_if<ReadAnswer>(&told->answers.front())) {
    if (told->revision < seen_) {  // the watch has told of later, which may be of this key
      pending.due = soon();
      return;
    }
    if (!read->keys.empty()) return take(read->keys.front());
    stored_.erase(key);
    if (!pending.changed && !memory_.find(key)) pending_.erase(key);
    return;
  }
  if (told->revision > seen_) {  // otherwise the watch has told of it, and of what came behind
    Stored& stored = stored_[key];
    if (told->revision > stored.revision) stored = {told->revision, written};
  }
  if (!pending.changed) pending_.erase(key);
}

void CooldownShare::on_failure(Pending& pending, const StoreError& error,
                               std::int64_t lease_bucket) {
  if (error.kind == StoreError::Kind::lease_gone) leases_.erase(lease_bucket);
  pending.due = soon();
}

std::optional<LeaseId> CooldownShare::lease_until(std::int64_t bucket) {
  if (const auto found = leases_.find(bucket); found != leases_.end()) {
    return found->second.ready ? std::optional{found->second.id} : std::nullopt;
  }
  const LeaseId id = static_cast<LeaseId>(random_.next() >> 1) | 1;
  leases_[bucket] = {id};
  const auto ttl =
      ceil<seconds>(WallTime{minutes{bucket}} - clock_.wall_now()) + seconds{kLeaseMargin};
  store_.grant(id, ttl, [this, bucket, id](Answer<LeaseTerm> answer) {
    const auto* error = std::get_if<StoreError>(&answer);
    const bool granted = !error || error->kind == StoreError::Kind::lease_exists;
    const auto lease = leases_.find(bucket);
    if (lease != leases_.end() && lease->second.id == id) {
      granted ? void(lease->second.ready = true) : void(leases_.erase(lease));
    }
    const SteadyTime due = granted ? clock_.steady_now() : soon();
    for (auto& [key, pending] : pending_) {
      if (pending.due == SteadyTime::max()) pending.due = due;
    }
  });
  const auto made = leases_.find(bucket);  // the answer may have come
  return made != leases_.end() && made->second.ready ? std::optional{id} : std::nullopt;
}

}  // namespace weir
