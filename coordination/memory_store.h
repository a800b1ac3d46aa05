#pragma once

// A Store in this process, with etcd's semantics. It is the embedded store of a replica that stands
// alone, and what tests and the simulation run on.
//
// Every call is answered before it returns, and then the watches are told; a watch from a past
// revision is told of it before watch() returns. Callbacks and handlers may call the store and
// destroy watches: such calls are answered at once, and what they have to tell to watches waits its
// turn, so that each watch sees revisions in order.
//
// Nothing happens by itself: a lease whose time has come is found by the next call, or by expire(),
// which the owner calls at next_expiry(). A transaction costs as much as the ranges it names, and
// one that changes something as many looks as there are watches.
//
// Single-threaded; owned by whoever owns the coordination loop. The clock must outlive it, its
// watches need not, and no callback or handler may destroy it.

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordination/base/clock.h"
#include "coordination/store.h"

namespace weir {

class MemoryStore final : public Store {
 public:
  struct Options {
    // Events kept for watches from a past revision; older ones are compacted away.
    std::size_t history = 10'000;
  };
  static constexpr std::chrono::seconds kMinTtl{2};
  static constexpr std::chrono::seconds kMaxTtl{9'000'000'000};

  explicit MemoryStore(const Clock& clock);
  MemoryStore(const Clock& clock, Options options);
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  void txn(Txn txn, Callback<TxnAnswer> callback) override;
  void grant(LeaseId lease, std::chrono::seconds ttl, Callback<LeaseTerm> callback) override;
  void keep_alive(LeaseId lease, Callback<LeaseTerm> callback) override;
  void revoke(LeaseId lease, Callback<LeaseTerm> callback) override;
  std::unique_ptr<Watch> watch(KeyRange range, Revision from, WatchHandler handler) override;

  // Of the last transaction that changed something; 1: there was none.
  Revision revision() const { return revision_; }
  std::size_t leases() const { return leases_.size(); }  // that have not ended

  // When the next lease ends, if none is renewed until then.
  std::optional<SteadyTime> next_expiry() const;
  // Deletes the keys of the leases whose time has come, each lease as one revision.
  void expire();
  // What a change of etcd's leader does: every lease lasts its full TTL and `extra` from now.
  void rearm_leases(std::chrono::seconds extra);
  // Forgets what happened up to and including `revision`; keys stay as they are.
  void compact(Revision revision);

 private:
  // Shared with the history and never changed: a put makes a new one.
  using KeyPointer = std::shared_ptr<const KeyValue>;
  using Keys = std::map<std::string, KeyPointer, std::less<>>;

  struct Lease {
    std::chrono::seconds ttl;
    SteadyTime expiry;
    std::set<std::string_view> keys;  // into keys_
  };
  using Leases = std::map<LeaseId, Lease>;

  // Its revision is the mod_revision of its key.
  struct Change {
    WatchEvent::Kind kind;
    KeyPointer key;
  };
  // Owned by the Watch that was handed out.
  struct Watcher {
    KeyRange range;
    Revision from;
    WatchHandler handler;
  };
  class WatchHandle;
  struct Delivery {
    std::weak_ptr<Watcher> watcher;
    Revision revision;
    std::vector<WatchEvent> events;  // empty: the watch is lost
  };

  std::pair<Keys::const_iterator, Keys::const_iterator> find(const KeyRange& range) const;
  bool holds(const Compare& compare) const;
  std::optional<StoreError> missing_lease(std::span<const Op> ops) const;

  OpAnswer apply(const Read& read);
  OpAnswer apply(Put& put);
  OpAnswer apply(const Delete& erase);
  Keys::const_iterator erase(Keys::const_iterator key);
  void detach(const KeyValue& key);
  void end_lease(Leases::iterator lease);
  void expire_due();
  void set_expiry(Leases::iterator lease, SteadyTime expiry);

  // Ends the transaction under way: what was changed since the last commit is one revision.
  void commit();
  void enqueue(const std::shared_ptr<Watcher>& watcher, std::span<const Change> changes);
  template <class T>
  void answer(const Callback<T>& callback, Answer<T> answer);
  void deliver();

  const Clock& clock_;
  const Options options_;
  Revision revision_ = 1;
  Revision compacted_ = 0;
  Keys keys_;
  Leases leases_;
  std::set<std::pair<SteadyTime, LeaseId>> expiries_;  // of all leases_

  std::vector<Change> changes_;  // of the transaction under way
  std::deque<Change> history_;   // all changes after compacted_
  std::vector<std::weak_ptr<Watcher>> watchers_;
  std::deque<Delivery> deliveries_;
  bool calling_out_ = false;  // a callback or handler runs: who called it delivers what is queued
};

}  // namespace weir
