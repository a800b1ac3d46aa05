#pragma once

// /v1/explain: what would happen to a request now, and why. On the control loop; the store is asked
// what has been claimed, and answers later. Nothing that a real request finds is changed by asking.

#include <memory>
#include <string>

#include "daemon/admin.h"
#include "daemon/cooldowns.h"
#include "daemon/coordination_thread.h"
#include "daemon/throttles.h"
#include "proxy/http/loop.h"
#include "proxy/placement.h"
#include "proxy/prospect.h"
#include "proxy/proxy.h"

namespace weir {

class ExplainPage {
 public:
  // What is in effect when somebody asks.
  struct InEffect {
    std::shared_ptr<const Settings> settings;
    http::Limits limits;
    bool draining = false;
  };

  ExplainPage(http::Loop& loop, CoordinationThread& coordination, OnStoreFailure on_store_failure,
              const Cooldowns& cooldowns, const Throttles& throttles)
      : loop_(loop),
        coordination_(coordination),
        on_store_failure_(on_store_failure),
        cooldowns_(cooldowns),
        throttles_(throttles) {}

  // {"request":…,"prospect":…,"path":…,"rule":…,"resource":…,"tenant":…,"limit":…,"usage":…,
  //  "upstream":…}; of a request that would be refused as it stands only the first two.
  http::Task<std::string> page(Question question, InEffect in_effect);

 private:
  UnitFacts look_up(const Rule& rule, const std::string& resource);

  http::Loop& loop_;
  CoordinationThread& coordination_;
  const OnStoreFailure on_store_failure_;
  const Cooldowns& cooldowns_;
  const Throttles& throttles_;
};

}  // namespace weir
