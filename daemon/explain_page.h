#pragma once

// /v1/explain: what would happen to a request now, and why. On the control loop; the store is asked
// what has been claimed, and answers later. Nothing that a real request finds is changed by asking.

#include <map>
#include <memory>
#include <string>

#include "daemon/admin.h"
#include "daemon/config.h"
#include "daemon/cooldowns.h"
#include "daemon/coordination_thread.h"
#include "daemon/throttles.h"
#include "proxy/attempt/upstream_retries.h"
#include "proxy/http/loop.h"
#include "proxy/placement.h"
#include "proxy/prospect.h"

namespace weir {

class ExplainPage {
 public:
  // What is in effect when somebody asks.
  struct InEffect {
    Config config;
    std::map<std::string, std::shared_ptr<UpstreamRetries>> retries;  // by upstream
    bool draining = false;
  };

  ExplainPage(http::Loop& loop, CoordinationThread& coordination, const Cooldowns& cooldowns,
              const Throttles& throttles)
      : loop_(loop), coordination_(coordination), cooldowns_(cooldowns), throttles_(throttles) {}

  // {"request":…,"prospect":…,"path":…,"rule":…,"resource":…,"tenant":…,"limit":…,"usage":…,
  //  "upstream":…}; of a request that would be refused as it stands only the first two.
  http::Task<std::string> page(Question question, InEffect in_effect);

 private:
  UnitFacts look_up(const Rule& rule, const std::string& resource, const Config& config);

  http::Loop& loop_;
  CoordinationThread& coordination_;
  const Cooldowns& cooldowns_;
  const Throttles& throttles_;
};

}  // namespace weir
