#pragma once

// A Store in etcd, spoken to over gRPC. It uses one member at a time, and another when that one is
// stuck, gone or without a leader. Every call has options.timeout to be answered, the wait for a
// member included; it is sent once, and never again by itself. Where no member can be used it is
// refused at once with not_applied.
//
// Owned by whoever owns the coordination loop and used on that loop alone; no call blocks. gRPC's
// threads only post to it. The store has no timer: the owner calls run() at next_due(), which may
// change with every call and with everything that is posted. Answers, handlers and notices come on
// the loop, and none of them may destroy the store.
//
// Destroyed on the loop, or when the loop has stopped but what `post` needs is still there: calls
// under way are cancelled and never answered, and nothing is posted from then on. It waits for gRPC
// to let go, which takes no round trip. Clock and random must outlive it, its watches need not.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "coordination/base/clock.h"
#include "coordination/base/random.h"
#include "coordination/etcd/calls.h"
#include "coordination/options.h"
#include "coordination/store.h"

namespace weir {

// What a person or the rest of the process should know. Each may be empty.
struct EtcdNotices {
  std::function<void(std::string)> warn{};
  std::function<void()> up{};                   // a member can be used
  std::function<void(std::string why)> down{};  // none can
  // The cluster is not the one it was: restored from a backup, or made anew. Called before the
  // first answer of the new one is handed over; all watches are lost.
  std::function<void()> replaced{};
};

class EtcdStore final : public Store {
 public:
  // `post` runs functions on the coordination loop, in order, and never before it returns; any
  // thread calls it.
  EtcdStore(EtcdOptions options, const Clock& clock, Random& random, etcd::Post post,
            EtcdNotices notices);
  ~EtcdStore() override;
  EtcdStore(const EtcdStore&) = delete;
  EtcdStore& operator=(const EtcdStore&) = delete;

  void txn(Txn txn, Callback<TxnAnswer> callback) override;
  void grant(LeaseId lease, std::chrono::seconds ttl, Callback<LeaseTerm> callback) override;
  void keep_alive(LeaseId lease, Callback<LeaseTerm> callback) override;
  void revoke(LeaseId lease, Callback<LeaseTerm> callback) override;
  std::unique_ptr<Watch> watch(KeyRange range, Revision from, WatchHandler handler) override;

  void run();
  std::optional<SteadyTime> next_due() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir
