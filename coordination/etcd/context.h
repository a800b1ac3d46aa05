#pragma once

// What every call to etcd carries. Included by wire.cc and watch_stream.cc alone.

#include <grpc/support/time.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <string>

#include "coordination/etcd/errors.h"

namespace weir::etcd {

inline void set_metadata(grpc::ClientContext& context, const std::string& token) {
  // A member that knows no leader says so at once, where it would wait for one.
  context.AddMetadata("hasleader", "true");
  if (!token.empty()) context.AddMetadata("token", token);
}

// Counted from now, whatever happens to the wall clock.
inline void set_timeout(grpc::ClientContext& context, std::chrono::milliseconds timeout) {
  context.set_deadline(gpr_time_from_millis(timeout.count(), GPR_TIMESPAN));
}

inline CallStatus call_status(const grpc::Status& status) {
  return {status.error_code(), status.error_message()};
}

}  // namespace weir::etcd
