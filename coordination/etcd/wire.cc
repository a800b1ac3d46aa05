#include "coordination/etcd/wire.h"

#include <grpcpp/channel.h>

#include <utility>

#include "coordination/etcd/channel.h"
#include "coordination/etcd/context.h"
#include "coordination/etcd/watch_stream.h"
#include "proto/etcd_rpc.grpc.pb.h"

namespace weir::etcd {
namespace {

namespace pb = etcdserverpb;

template <class Request, class Response>
class UnaryCall final : public Call {
 public:
  UnaryCall(Request asked, const CallTerms& terms, Done<Response> done)
      : request(std::move(asked)), done_(std::move(done)) {
    set_metadata(context, terms.token);
    set_timeout(context, terms.timeout);
  }
  void cancel() override { context.TryCancel(); }
  void finish() override { done_(status, response); }

  grpc::ClientContext context;
  const Request request;
  Response response;
  CallStatus status;

 private:
  const Done<Response> done_;
};

// A stream of one request and one response.
class KeepAliveCall final
    : public Call,
      public grpc::ClientBidiReactor<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse> {
 public:
  KeepAliveCall(pb::LeaseKeepAliveRequest request, const CallTerms& terms,
                Done<pb::LeaseKeepAliveResponse> done)
      : request_(std::move(request)), done_(std::move(done)) {
    set_metadata(context_, terms.token);
    set_timeout(context_, terms.timeout);
  }

  void start(pb::Lease::Stub& stub, Calls::Landing landing) {
    landing_ = std::move(landing);
    stub.async()->LeaseKeepAlive(&context_, this);
    StartWriteLast(&request_, grpc::WriteOptions());
    StartRead(&response_);
    StartCall();
  }
  void cancel() override { context_.TryCancel(); }
  void finish() override { done_(status_, response_); }

  void OnReadDone(bool ok) override { answered_ = ok; }
  void OnDone(const grpc::Status& status) override {
    // An answer that came is an answer, however the stream ended.
    if (!answered_) {
      status_ = call_status(status);
      if (status_.ok()) status_ = {grpc::StatusCode::UNAVAILABLE, "no answer to a keepalive"};
    }
    landing_->land();
  }

 private:
  grpc::ClientContext context_;
  const pb::LeaseKeepAliveRequest request_;
  const Done<pb::LeaseKeepAliveResponse> done_;
  std::optional<Calls::Landing> landing_;
  pb::LeaseKeepAliveResponse response_;
  bool answered_ = false;
  CallStatus status_;
};

}  // namespace

struct Wire::Stubs {
  explicit Stubs(std::shared_ptr<grpc::Channel> to)
      : channel(std::move(to)),
        kv(channel),
        lease(channel),
        watch(channel),
        auth(channel),
        maintenance(channel) {}

  std::shared_ptr<grpc::Channel> channel;
  pb::KV::Stub kv;
  pb::Lease::Stub lease;
  pb::Watch::Stub watch;
  pb::Auth::Stub auth;
  pb::Maintenance::Stub maintenance;
};

Wire::Wire(const std::string& endpoint, const EtcdOptions& options, Calls& calls)
    : calls_(calls), stubs_(std::make_unique<Stubs>(make_channel(endpoint, options))) {}

Wire::~Wire() = default;

bool Wire::is_connected() { return stubs_->channel->GetState(true) == GRPC_CHANNEL_READY; }

template <class Request, class Response, class Method>
void Wire::unary(Request request, const CallTerms& terms, Done<Response> done, Method method) {
  auto owned =
      std::make_unique<UnaryCall<Request, Response>>(std::move(request), terms, std::move(done));
  auto* call = owned.get();
  const Calls::Landing landing = calls_.add(std::move(owned));
  method(&call->context, &call->request, &call->response,
         [call, landing](const grpc::Status& status) {
           call->status = call_status(status);
           landing.land();
         });
}

void Wire::send(pb::TxnRequest request, const CallTerms& terms, Done<pb::TxnResponse> done) {
  unary(std::move(request), terms, std::move(done),
        [this](auto... a) { stubs_->kv.async()->Txn(std::move(a)...); });
}

void Wire::send(pb::LeaseGrantRequest request, const CallTerms& terms,
                Done<pb::LeaseGrantResponse> done) {
  unary(std::move(request), terms, std::move(done),
        [this](auto... a) { stubs_->lease.async()->LeaseGrant(std::move(a)...); });
}

void Wire::send(pb::LeaseRevokeRequest request, const CallTerms& terms,
                Done<pb::LeaseRevokeResponse> done) {
  unary(std::move(request), terms, std::move(done),
        [this](auto... a) { stubs_->lease.async()->LeaseRevoke(std::move(a)...); });
}

void Wire::send(pb::StatusRequest request, const CallTerms& terms, Done<pb::StatusResponse> done) {
  unary(std::move(request), terms, std::move(done),
        [this](auto... a) { stubs_->maintenance.async()->Status(std::move(a)...); });
}

void Wire::send(pb::AuthenticateRequest request, const CallTerms& terms,
                Done<pb::AuthenticateResponse> done) {
  unary(std::move(request), terms, std::move(done),
        [this](auto... a) { stubs_->auth.async()->Authenticate(std::move(a)...); });
}

void Wire::send(pb::LeaseKeepAliveRequest request, const CallTerms& terms,
                Done<pb::LeaseKeepAliveResponse> done) {
  auto owned = std::make_unique<KeepAliveCall>(std::move(request), terms, std::move(done));
  KeepAliveCall* call = owned.get();
  call->start(stubs_->lease, calls_.add(std::move(owned)));
}

Call* Wire::watch(pb::WatchRequest request, const CallTerms& terms, WatchSteps steps) {
  auto owned = std::make_unique<WatchStream>(std::move(request), terms.token, std::move(steps));
  WatchStream* stream = owned.get();
  stream->start(stubs_->watch, calls_.add(std::move(owned)));
  return stream;
}

}  // namespace weir::etcd
