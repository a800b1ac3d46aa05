#pragma once

// A coordination loop for tests, with an EtcdStore on it: the loop is whoever calls run_until().

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "coordination/etcd/etcd_store.h"
#include "tests/support/socket.h"

namespace weir::test {

class RealClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return std::chrono::steady_clock::now(); }
  WallTime wall_now() const override { return std::chrono::system_clock::now(); }
};

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

EtcdOptions options_for(std::vector<std::string> endpoints);

class EtcdLoop {
 public:
  explicit EtcdLoop(EtcdOptions options);

  EtcdStore& store() { return *store_; }
  void destroy_store() { store_.reset(); }
  // False: it took longer than anything should.
  bool run_until(const std::function<bool()>& done, Span timeout = patience);
  void run_for(Span span) {
    run_until([] { return false; }, span);
  }
  std::size_t posted();  // and not yet run

  // Asks and waits for the answer.
  Answer<TxnAnswer> txn(Txn txn);
  Answer<TxnAnswer> put(const std::string& key, const std::string& value = "v");
  Answer<LeaseTerm> grant(LeaseId lease, std::chrono::seconds ttl);
  Answer<LeaseTerm> keep_alive(LeaseId lease);
  // Asks again until it is done, as whoever uses a store does; false if it never was.
  bool put_at_last(const std::string& key, Span timeout = patience);
  // Puts without end, whatever the answers, until `done` holds.
  bool put_until(const std::function<bool()>& done, const Callback<TxnAnswer>& callback = nullptr);

  // What was told.
  std::vector<std::string> warnings, downs;
  int ups = 0, replaced = 0;

 private:
  template <class T>
  Answer<T> ask(const std::function<void(Callback<T>)>& call);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> posted_;  // guarded by mutex_
  RealClock clock_;
  SeededRandom random_{std::random_device{}()};
  std::unique_ptr<EtcdStore> store_;
};

}  // namespace weir::test
