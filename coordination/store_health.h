#pragma once

// A store with an eye on its answers: every call is passed on, and what becomes of it tells whether
// the store is there. It is down when nothing was answered for a while since a call was sent that
// failed or is still waiting, and up again with the next answer. Owned by the coordination loop.

#include <functional>
#include <optional>

#include "coordination/base/clock.h"
#include "coordination/store.h"

namespace weir {

class StoreHealth final : public Store {
 public:
  // `back` is called with the first answer after the store was down.
  StoreHealth(Store& store, const Clock& clock, SteadyTime::duration patience,
              std::function<void()> back)
      : store_(store), clock_(clock), patience_(patience), back_(std::move(back)) {}

  void txn(Txn txn, Callback<TxnAnswer> callback) override;
  void grant(LeaseId lease, std::chrono::seconds ttl, Callback<LeaseTerm> callback) override;
  void keep_alive(LeaseId lease, Callback<LeaseTerm> callback) override;
  void revoke(LeaseId lease, Callback<LeaseTerm> callback) override;
  std::unique_ptr<Watch> watch(KeyRange range, Revision from, WatchHandler handler) override {
    return store_.watch(std::move(range), from, std::move(handler));
  }

  bool down() const { return down_; }
  // Looks at the time; true: it is down from now on.
  bool check(SteadyTime now);
  // When to check.
  std::optional<SteadyTime> next_due() const;

 private:
  template <class T>
  Callback<T> noting(Callback<T> callback);
  void answered();
  void failed(SteadyTime sent);

  Store& store_;
  const Clock& clock_;
  const SteadyTime::duration patience_;
  const std::function<void()> back_;
  SteadyTime answered_at_{};
  std::optional<SteadyTime> waiting_since_;  // for the first answer after that
  bool down_ = false;
};

}  // namespace weir
