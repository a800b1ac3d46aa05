#pragma once

// Three replicas with a limit of each kind, all of them under more demand than they allow, while a
// test breaks something. Whatever that is, no limit is exceeded.

#include <gtest/gtest.h>

#include <optional>

#include "tests/cluster/cluster.h"
#include "tests/cluster/judges.h"

namespace weir::test {

class UnderLoad {
 public:
  explicit UnderLoad(ClusterSettings settings = {});
  // All that was forwarded since the beginning.
  ~UnderLoad();

  // Returns when every replica has claimed, and forwarded, where there is room for all, and a whole
  // window of another limit was used up by any of them. (Who gets how much of that is nobody's
  // promise.)
  void expect_serving_again(Span within = sanitized ? 30s : 10s);
  void stop_load() { load_->stop(); }

  static constexpr int limit = 100;
  static constexpr std::chrono::seconds window{2};

  Cluster cluster;

 private:
  std::optional<Load> load_;
};

}  // namespace weir::test
