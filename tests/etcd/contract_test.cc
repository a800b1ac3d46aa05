// The contract of every store, kept by etcd.

#include <gtest/gtest.h>

#include "tests/contract/store_contract.h"
#include "tests/etcd/etcd_loop.h"
#include "tests/support/etcd_cluster.h"

namespace weir {
namespace {

// One for all tests of this program; it goes with the last of them.
class SharedEtcd final : public testing::Environment {
 public:
  void TearDown() override { cluster_.reset(); }
  test::EtcdCluster& get() {
    if (!cluster_) cluster_ = std::make_unique<test::EtcdCluster>();
    return *cluster_;
  }

 private:
  std::unique_ptr<test::EtcdCluster> cluster_;
};
SharedEtcd& shared_etcd() {
  static auto* const shared = new SharedEtcd;  // owned by GoogleTest
  return *shared;
}
const auto* const registered = testing::AddGlobalTestEnvironment(&shared_etcd());

class EtcdUnderTest final : public StoreUnderTest {
 public:
  EtcdUnderTest() : loop_(options()) {}

  Store& store() override { return loop_.store(); }
  bool run_until(const std::function<bool()>& done) override { return loop_.run_until(done); }
  void pass(std::chrono::seconds duration) override { loop_.run_for(duration); }
  std::string prefix() override { return "test" + std::to_string(++last_prefix_) + "/"; }
  LeaseId fresh_lease() override { return ++last_lease_; }
  bool is_alone() const override { return true; }
  bool compact(Revision revision) override {
    shared_etcd().get().etcdctl({"compact", std::to_string(revision)});
    return true;
  }

 private:
  // Time enough on a slow machine: what is tested here is not speed.
  static EtcdOptions options() {
    EtcdOptions options = test::options_for(shared_etcd().get().endpoints());
    options.timeout = std::chrono::seconds{10};
    return options;
  }

  static inline int last_prefix_ = 0;
  static inline LeaseId last_lease_ = 0;
  test::EtcdLoop loop_;
};

INSTANTIATE_TEST_SUITE_P(Etcd, StoreContract,
                         testing::Values(StoreFactory{
                             "Etcd", [] { return std::make_unique<EtcdUnderTest>(); }}));

}  // namespace
}  // namespace weir
