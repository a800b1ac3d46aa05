#pragma once

// What an error of a call to etcd means: for whoever asked, and for the member that was asked. A
// pure function. Whatever is not known to have changed nothing is unknown: etcd may have applied
// it, or may do so later.

#include <string>
#include <string_view>

#include "coordination/store.h"

namespace weir::etcd {

// How a call ended: gRPC's status code (0: well) and the server's words.
struct CallStatus {
  int code = 0;
  std::string message{};

  bool ok() const { return code == 0; }
};

struct Fault {
  enum class Member {
    fine,       // it answered; the request was at fault, or the whole cluster is
    timed_out,  // it may be stuck
    unusable,   // it is gone, stopped, or knows no leader
    login,      // it no longer knows our token
  };
  StoreError::Kind kind;
  Member member;
};

Fault fault_of(const CallStatus& status);

// Whether a watch was refused for want of rights, which a token that has run out lacks too.
bool refused_for_rights(std::string_view cancel_reason);

}  // namespace weir::etcd
