#include "tests/etcd/etcd_loop.h"

namespace weir::test {

EtcdOptions options_for(std::vector<std::string> endpoints) {
  EtcdOptions options;
  options.endpoints = std::move(endpoints);
  return options;
}

EtcdLoop::EtcdLoop(EtcdOptions options) {
  EtcdNotices notices{.warn = [this](std::string what) { warnings.push_back(std::move(what)); },
                      .up = [this] { ++ups; },
                      .down = [this](std::string why) { downs.push_back(std::move(why)); },
                      .replaced = [this] { ++replaced; }};
  const auto post = [this](std::function<void()> step) {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(step));
    changed_.notify_all();
  };
  store_ =
      std::make_unique<EtcdStore>(std::move(options), clock_, random_, post, std::move(notices));
}

bool EtcdLoop::run_until(const std::function<bool()>& done, Span timeout) {
  const SteadyTime deadline = clock_.steady_now() + timeout;
  while (!done()) {
    if (clock_.steady_now() >= deadline) return false;
    std::function<void()> step;
    {
      std::unique_lock lock(mutex_);
      const auto due =
          std::min(deadline, store_ ? store_->next_due().value_or(deadline) : deadline);
      changed_.wait_until(lock, due, [this] { return !posted_.empty(); });
      if (!posted_.empty()) {
        step = std::move(posted_.front());
        posted_.pop_front();
      }
    }
    if (step) step();
    if (store_) store_->run();
  }
  return true;
}

std::size_t EtcdLoop::posted() {
  const std::lock_guard lock(mutex_);
  return posted_.size();
}

template <class T>
Answer<T> EtcdLoop::ask(const std::function<void(Callback<T>)>& call) {
  auto answer = std::make_shared<std::optional<Answer<T>>>();
  call([answer](Answer<T> got) { *answer = std::move(got); });
  if (run_until([&] { return answer->has_value(); })) return **answer;
  return StoreError{StoreError::Kind::unknown, "never answered"};
}

Answer<TxnAnswer> EtcdLoop::txn(Txn txn) {
  return ask<TxnAnswer>([&](auto callback) { store_->txn(std::move(txn), std::move(callback)); });
}

Answer<TxnAnswer> EtcdLoop::put(const std::string& key, const std::string& value) {
  return txn({{}, {Put{key, value}}, {}});
}

Answer<LeaseTerm> EtcdLoop::grant(LeaseId lease, std::chrono::seconds ttl) {
  return ask<LeaseTerm>([&](auto callback) { store_->grant(lease, ttl, std::move(callback)); });
}

Answer<LeaseTerm> EtcdLoop::keep_alive(LeaseId lease) {
  return ask<LeaseTerm>([&](auto callback) { store_->keep_alive(lease, std::move(callback)); });
}

bool EtcdLoop::put_at_last(const std::string& key, Span timeout) {
  const SteadyTime deadline = clock_.steady_now() + timeout;
  while (clock_.steady_now() < deadline) {
    if (std::holds_alternative<TxnAnswer>(put(key))) return true;
    run_for(20ms);
  }
  return false;
}

bool EtcdLoop::put_until(const std::function<bool()>& done, const Callback<TxnAnswer>& callback) {
  const SteadyTime deadline = clock_.steady_now() + patience;
  while (!done()) {
    if (clock_.steady_now() >= deadline) return false;
    store_->txn({{}, {Put{"a", "v"}}, {}}, callback);
    run_for(50ms);
  }
  return true;
}

}  // namespace weir::test
