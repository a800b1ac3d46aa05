#pragma once

// /v1/resources: which resources are busy, and what the store holds for one of them. On the control
// loop; the coordination thread is asked and answers later.

#include <string>

#include "daemon/admin.h"
#include "daemon/coordination_thread.h"
#include "proxy/http/loop.h"

namespace weir {

class ResourcePages {
 public:
  ResourcePages(http::Loop& loop, CoordinationThread& coordination)
      : loop_(loop), coordination_(coordination) {}

  // {"resources":[…]}, the busiest first.
  http::Task<std::string> page(ResourceQuery query);

 private:
  std::string busiest(std::size_t top);
  http::Task<std::string> named(std::string name);
  http::Task<Coordinator::Claims> claims_of(std::shared_ptr<Resource> resource);

  http::Loop& loop_;
  CoordinationThread& coordination_;
};

}  // namespace weir
