#pragma once

// Three replicas with a limit of each kind, all of them under more demand than they allow, while a
// test breaks something. Whatever that is, no limit is exceeded. One cluster serves the tests of a
// suite one after another; one in which a test failed is not used again.

#include <gtest/gtest.h>

#include <memory>

#include "integration/cluster.h"

namespace weir::test {

class UnderLoad : public ::testing::Test {
 public:
  static void TearDownTestSuite();  // judges all that etcd ever had claimed

 protected:
  static constexpr int limit = 100;
  static constexpr std::chrono::seconds window{2};

  explicit UnderLoad(std::vector<std::string> files = {}) : files_(std::move(files)) {}

  void SetUp() override;
  void TearDown() override;  // judges all that was forwarded

  Cluster& cluster() { return *cluster_; }
  Etcd& etcd() { return cluster_->etcd; }
  Load& load() { return *load_; }
  void ask_more(std::vector<Load::Stream> streams);
  // Returns when the replica behind each of the doors has claimed, and forwarded, where there is
  // room for all, and a whole window of another limit was used up by any of them. (Who gets how
  // much of that is nobody's promise.)
  void expect_serving_again(const std::vector<std::string>& doors, Span within = 15s);
  void expect_serving_again();

 private:
  static void judge_claims();

  static std::unique_ptr<Cluster> cluster_;
  const std::vector<std::string> files_;  // as ClusterSettings has them
  Instant began_;
  std::unique_ptr<Load> load_, more_;
};

}  // namespace weir::test
