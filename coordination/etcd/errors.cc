#include "coordination/etcd/errors.h"

#include <grpcpp/support/status_code_enum.h>

namespace weir::etcd {
namespace {

using Kind = StoreError::Kind;
using Member = Fault::Member;

bool says(const CallStatus& status, std::string_view words) {
  return status.message.find(words) != std::string::npos;
}

Fault unavailable(const CallStatus& status) {
  // gRPC's own words for a call that found no connection; no server has seen it.
  if (status.message.starts_with("failed to connect to all addresses")) {
    return {Kind::not_applied, Member::unusable};
  }
  if (says(status, "leader changed")) return {Kind::unknown, Member::fine};
  if (says(status, "request timed out")) return {Kind::unknown, Member::timed_out};
  return {Kind::unknown, Member::unusable};
}

}  // namespace

Fault fault_of(const CallStatus& status) {
  switch (status.code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      // The name is empty for a server whose users were turned on after we had logged in.
      return {Kind::not_applied,
              says(status, "revision of auth store is old") || says(status, "user name is empty")
                  ? Member::login
                  : Member::fine};
    case grpc::StatusCode::UNAUTHENTICATED:
      if (says(status, "invalid auth token")) return {Kind::not_applied, Member::login};
      return {Kind::unknown, Member::fine};
    case grpc::StatusCode::PERMISSION_DENIED:
      return {Kind::not_applied, Member::fine};
    case grpc::StatusCode::NOT_FOUND:
      return {says(status, "lease not found") ? Kind::lease_gone : Kind::unknown, Member::fine};
    case grpc::StatusCode::FAILED_PRECONDITION:
      return {says(status, "lease already exists") ? Kind::lease_exists : Kind::unknown,
              Member::fine};
    case grpc::StatusCode::OUT_OF_RANGE:
      return {says(status, "too large lease TTL") ? Kind::not_applied : Kind::unknown,
              Member::fine};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      // The other one, no space, is also the answer to the very transaction that filled it.
      return {says(status, "too many requests") ? Kind::not_applied : Kind::unknown, Member::fine};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {Kind::unknown, Member::timed_out};
    case grpc::StatusCode::UNAVAILABLE:
      return unavailable(status);
    default:
      return {Kind::unknown, Member::fine};
  }
}

bool refused_for_rights(std::string_view cancel_reason) {
  for (const std::string_view words :
       {"permission denied", "invalid auth token", "revision of auth store is old"}) {
    if (cancel_reason.find(words) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace weir::etcd
