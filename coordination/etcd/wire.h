#pragma once

// One member of etcd, as calls: each is sent at once, has a deadline, and is answered on the
// coordination loop, once. gRPC is known to wire.cc, watch_stream.cc and channel.cc only.
//
// Owned by the store and used on the coordination loop. It must not outlive its Calls.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "coordination/etcd/calls.h"
#include "coordination/etcd/errors.h"
#include "coordination/options.h"

namespace etcdserverpb {
class AuthenticateRequest;
class AuthenticateResponse;
class LeaseGrantRequest;
class LeaseGrantResponse;
class LeaseKeepAliveRequest;
class LeaseKeepAliveResponse;
class LeaseRevokeRequest;
class LeaseRevokeResponse;
class StatusRequest;
class StatusResponse;
class TxnRequest;
class TxnResponse;
class WatchRequest;
class WatchResponse;
}  // namespace etcdserverpb

namespace weir::etcd {

template <class Response>
using Done = std::function<void(const CallStatus&, Response&)>;

struct CallTerms {
  std::chrono::milliseconds timeout;
  std::string token;  // empty: none
};

struct WatchSteps {
  std::function<void(etcdserverpb::WatchResponse&)> response;
  std::function<void(const CallStatus&)> over;
};

class Wire {
 public:
  Wire(const std::string& endpoint, const EtcdOptions& options, Calls& calls);
  ~Wire();

  // Whether a call would be sent at once; asks for a connection if not.
  bool is_connected();

  // A call that finds no connection waits for the attempt that is under way, and fails with it.
  void send(etcdserverpb::TxnRequest request, const CallTerms& terms,
            Done<etcdserverpb::TxnResponse> done);
  void send(etcdserverpb::LeaseGrantRequest request, const CallTerms& terms,
            Done<etcdserverpb::LeaseGrantResponse> done);
  void send(etcdserverpb::LeaseRevokeRequest request, const CallTerms& terms,
            Done<etcdserverpb::LeaseRevokeResponse> done);
  void send(etcdserverpb::LeaseKeepAliveRequest request, const CallTerms& terms,
            Done<etcdserverpb::LeaseKeepAliveResponse> done);
  void send(etcdserverpb::StatusRequest request, const CallTerms& terms,
            Done<etcdserverpb::StatusResponse> done);
  void send(etcdserverpb::AuthenticateRequest request, const CallTerms& terms,
            Done<etcdserverpb::AuthenticateResponse> done);
  // Goes on until it is cancelled; then, or when it ends by itself, `over` is called. The timeout
  // is not looked at. The call is there until `over` returns.
  Call* watch(etcdserverpb::WatchRequest request, const CallTerms& terms, WatchSteps steps);

 private:
  struct Stubs;

  template <class Request, class Response, class Method>
  void unary(Request request, const CallTerms& terms, Done<Response> done, Method method);

  Calls& calls_;
  std::unique_ptr<Stubs> stubs_;
};

}  // namespace weir::etcd
