#include "coordination/membership.h"

#include <utility>

namespace weir {
namespace {

constexpr std::chrono::milliseconds kRetry{500};

}  // namespace

void Membership::run(SteadyTime now) {
  if (read_at_ && now >= *read_at_) read();
}

std::optional<SteadyTime> Membership::next_due() const { return read_at_; }

void Membership::read_again() {
  const auto most = static_cast<std::uint64_t>(kRetry.count());
  read_at_ = clock_.steady_now() + std::chrono::milliseconds{random_.below(most) + 1};
}

void Membership::read() {
  read_at_.reset();
  watch_.reset();
  Txn txn;
  txn.then.push_back(Read{keys_under(keys_.all_replicas())});
  store_.txn(std::move(txn), [this](Answer<TxnAnswer> answer) {
    const auto* told = std::get_if<TxnAnswer>(&answer);
    told ? on_read(*told) : read_again();
  });
}

// What happens after the revision that was read is watched, so nothing is missed between.
void Membership::on_read(const TxnAnswer& answer) {
  members_.clear();
  for (const KeyValue& entry : std::get<ReadAnswer>(answer.answers.front()).keys) put(entry);
  watch_ =
      store_.watch(keys_under(keys_.all_replicas()), answer.revision + 1,
                   {[this](Revision, std::span<const WatchEvent> events) { on_events(events); },
                    [this] { read_again(); }});
  changed_();
}

void Membership::on_events(std::span<const WatchEvent> events) {
  for (const WatchEvent& event : events) {
    if (event.kind == WatchEvent::Kind::put) {
      put(event.key);
    } else if (const auto facts = keys_.parse_replica(event.key.key, "")) {
      members_.erase(facts->name);
    }
  }
  changed_();
}

void Membership::put(const KeyValue& entry) {
  if (auto facts = keys_.parse_replica(entry.key, entry.value)) {
    std::string name = facts->name;
    members_[std::move(name)] = {*std::move(facts), entry.lease};
  }
}

}  // namespace weir
