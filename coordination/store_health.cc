#include "coordination/store_health.h"

#include <algorithm>
#include <utility>

namespace weir {

template <class T>
Callback<T> StoreHealth::noting(Callback<T> callback) {
  const SteadyTime sent = clock_.steady_now();
  if (!waiting_since_) waiting_since_ = sent;
  return [this, sent, callback = std::move(callback)](Answer<T> answer) {
    const auto* error = std::get_if<StoreError>(&answer);
    // That a lease is gone, or is there, is an answer.
    const bool silent = error && (error->kind == StoreError::Kind::unknown ||
                                  error->kind == StoreError::Kind::not_applied);
    silent ? failed(sent) : answered();
    callback(std::move(answer));
  };
}

void StoreHealth::txn(Txn txn, Callback<TxnAnswer> callback) {
  store_.txn(std::move(txn), noting(std::move(callback)));
}

void StoreHealth::grant(LeaseId lease, std::chrono::seconds ttl, Callback<LeaseTerm> callback) {
  store_.grant(lease, ttl, noting(std::move(callback)));
}

void StoreHealth::keep_alive(LeaseId lease, Callback<LeaseTerm> callback) {
  store_.keep_alive(lease, noting(std::move(callback)));
}

void StoreHealth::revoke(LeaseId lease, Callback<LeaseTerm> callback) {
  store_.revoke(lease, noting(std::move(callback)));
}

void StoreHealth::answered() {
  answered_at_ = clock_.steady_now();
  waiting_since_.reset();
  if (std::exchange(down_, false)) back_();
}

void StoreHealth::failed(SteadyTime sent) {
  if (!waiting_since_) waiting_since_ = std::max(sent, answered_at_);
}

bool StoreHealth::check(SteadyTime now) {
  if (down_ || !waiting_since_ || now < *waiting_since_ + patience_) return false;
  down_ = true;
  return true;
}

std::optional<SteadyTime> StoreHealth::next_due() const {
  if (down_ || !waiting_since_) return std::nullopt;
  return *waiting_since_ + patience_;
}

}  // namespace weir
