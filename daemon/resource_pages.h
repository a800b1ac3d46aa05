#pragma once

// /v1/resources: which resources are busy, and what the store holds for one of them. On the control
// loop; the coordination thread is asked and answers later.

#include <optional>
#include <string>

#include "daemon/admin.h"
#include "daemon/coordination_thread.h"
#include "proxy/http/loop.h"

namespace weir {

// What the store holds for a resource now; nothing: it does not say.
http::Task<std::optional<Coordinator::Claims>> claims_of(http::Loop& loop,
                                                         CoordinationThread& coordination,
                                                         const Policy& policy,
                                                         std::string resource);

class ResourcePages {
 public:
  ResourcePages(http::Loop& loop, CoordinationThread& coordination)
      : loop_(loop), coordination_(coordination) {}

  // {"resources":[…]}, the busiest first.
  http::Task<std::string> page(ResourceQuery query);

 private:
  std::string busiest(std::size_t top);
  http::Task<std::string> named(std::string name);

  http::Loop& loop_;
  CoordinationThread& coordination_;
};

}  // namespace weir
