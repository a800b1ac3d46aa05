#pragma once

// Cooldowns over all replicas and restarts: the records of this process are written to the store,
// and what others wrote, or this process before it was restarted, is read once and then watched.
// Owned by the coordination loop; nothing that a request does waits for it.
//
// Two replicas' records of one key are merged (cooldown_record.h): each writes only over what it
// has seen, and otherwise reads, merges and writes again. A success deletes the key, unless it
// shows a failure after the success was sent. Keys hang on leases that end after the record has
// become useless, one for all that end within the same minute, so that nobody has to clear up.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "coordination/base/clock.h"
#include "coordination/base/random.h"
#include "coordination/cooldown_record.h"
#include "coordination/keyspace.h"
#include "coordination/store.h"

namespace weir {

class CooldownShare {
 public:
  CooldownShare(Store& store, Random& random, const Clock& clock, const Keyspace& keys,
                CooldownMemory& memory)
      : store_(store), random_(random), clock_(clock), keys_(keys), memory_(memory) {}

  // Takes up what has changed, and does what is due.
  void run(SteadyTime now);
  std::optional<SteadyTime> next_due() const;
  // Somebody wants to know who did not before.
  void read_anew() { read_at_ = SteadyTime{}; }
  // The store holds nothing of what it held.
  void start_over();

 private:
  // What the store holds for a key, as far as is known.
  struct Stored {
    Revision revision = 0;  // of the last change
    std::string value{};    // empty: it was deleted then
  };
  // Something to write: the record as it is then, or that there is none.
  struct Pending {
    std::optional<WallTime> cleared_by{};
    SteadyTime due{};
    bool under_way = false;
    bool changed = false;  // since it was sent
  };
  struct Lease {
    LeaseId id = 0;
    bool ready = false;
  };

  void take_changes();
  void read();
  void on_read(const TxnAnswer& answer);
  void on_events(Revision revision, std::span<const WatchEvent> events);
  void take(const KeyValue& entry);
  void gone(const CooldownKey& key);
  void send(const CooldownKey& key, Pending& pending);
  void put(const CooldownKey& key, Pending& pending, const CooldownMemory::Kept& kept);
  void clear(const CooldownKey& key, Pending& pending);
  void transact(const CooldownKey& key, Pending& pending, std::optional<Op> op,
                std::int64_t lease_bucket);
  void on_answer(const CooldownKey& key, const std::string& written, std::int64_t lease_bucket,
                 const Answer<TxnAnswer>& answer);
  void on_failure(Pending& pending, const StoreError& error, std::int64_t lease_bucket);
  // Nothing: not granted yet.
  std::optional<LeaseId> lease_until(std::int64_t bucket);
  SteadyTime soon();

  Store& store_;
  Random& random_;
  const Clock& clock_;
  const Keyspace& keys_;
  CooldownMemory& memory_;

  std::map<CooldownKey, Stored> stored_;
  Revision seen_ = 0;  // stored_ is as it was then, or later
  std::map<CooldownKey, Pending> pending_;
  std::size_t under_way_ = 0;
  std::map<std::int64_t, Lease> leases_;  // by the minute that they last to
  std::unique_ptr<Watch> watch_;
  std::optional<SteadyTime> read_at_ = SteadyTime{};  // nothing: under way, or watched
};

}  // namespace weir
