#pragma once

// What every Store promises, as tests that run on any of them: store_contract_*.cc has them, and
// whoever has a store instantiates them with
//
//   INSTANTIATE_TEST_SUITE_P(Mine, StoreContract, testing::Values(StoreFactory{"Mine",
//   make_mine}));
//
// The store may be shared with other tests that run at the same time: keys are unique by prefix,
// revisions are compared with each other only, and few tests let time pass.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordination/store.h"

namespace weir {

// A store and the loop that it lives on.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;

  virtual Store& store() = 0;
  // Runs the loop until `done` holds; false if that took far too long.
  virtual bool run_until(const std::function<bool()>& done) = 0;
  // Lets time pass while the loop runs.
  virtual void pass(std::chrono::seconds duration) = 0;

  // Nobody else has keys under it, or a lease of that id.
  virtual std::string prefix() = 0;
  virtual LeaseId fresh_lease() = 0;

  // Whether nobody else changes anything in this store meanwhile.
  virtual bool is_alone() const { return false; }
  // Makes the store forget what happened up to `revision`; false if this one cannot be told to.
  virtual bool compact(Revision revision) { return static_cast<void>(revision), false; }
};

struct StoreFactory {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> make;
};
inline void PrintTo(const StoreFactory& factory, std::ostream* out) { *out << factory.name; }

// What a watch was told. It must outlive the watch.
struct Seen {
  struct Step {
    Revision revision;
    std::vector<WatchEvent> events;
  };
  std::vector<Step> steps;
  int lost = 0;

  WatchHandler handler();
  // "put a=1", "deleted b": one string per event, all of one revision joined by ", ", without
  // `prefix`.
  std::vector<std::string> told(std::string_view prefix) const;
};

class StoreContract : public testing::TestWithParam<StoreFactory> {
 protected:
  void SetUp() override;
  void TearDown() override;

  Store& store() { return under_test_->store(); }
  StoreUnderTest& under_test() { return *under_test_; }

  std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  KeyRange one(std::string_view name) const { return {key(name), ""}; }
  KeyRange under(std::string_view name) const { return keys_under(key(name)); }
  LeaseId fresh_lease() { return under_test_->fresh_lease(); }

  // Asks and waits for the answer.
  Answer<TxnAnswer> try_txn(Txn txn);
  TxnAnswer txn(Txn txn);
  StoreError::Kind refusal_of(Txn txn);
  Answer<LeaseTerm> grant(LeaseId lease, std::chrono::seconds ttl);
  Answer<LeaseTerm> keep_alive(LeaseId lease);
  Answer<LeaseTerm> revoke(LeaseId lease);
  LeaseId granted(std::chrono::seconds ttl);

  Put put_of(std::string_view name, std::string value = "v", LeaseId lease = 0) const;
  Revision put(std::string_view name, std::string value = "v", LeaseId lease = 0);
  Revision erase(std::string_view name);
  std::optional<KeyValue> get(std::string_view name);
  KeyValue at(std::string_view name);  // which must be there
  ReadAnswer read(Read read);
  std::vector<std::string> names_in(KeyRange range);
  bool holds(Compare compare);
  bool holds_all(std::vector<Compare> compares);

  void wait_for(const std::function<bool()>& done);
  // Waits, letting time pass, for what the store does some time after it may.
  bool comes_true(const std::function<bool()>& condition);

 private:
  template <class T>
  Answer<T> ask(const std::function<void(Callback<T>)>& call);

  std::unique_ptr<StoreUnderTest> under_test_;
  std::string prefix_;
  int asked_ = 0, answered_ = 0;
};

}  // namespace weir
