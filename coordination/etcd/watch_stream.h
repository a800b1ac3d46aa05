#pragma once

// One watch as a stream of its own. The next response is read when the loop is done with the last,
// so a loop that is slow holds etcd back and not responses in memory. Made and cancelled on the
// coordination loop, owned by Calls.

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <atomic>
#include <optional>
#include <string>

#include "coordination/etcd/calls.h"
#include "coordination/etcd/wire.h"
#include "proto/etcd_rpc.grpc.pb.h"

namespace weir::etcd {

class WatchStream final
    : public Call,
      public grpc::ClientBidiReactor<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse> {
 public:
  WatchStream(etcdserverpb::WatchRequest request, const std::string& token, WatchSteps steps);

  void start(etcdserverpb::Watch::Stub& stub, Calls::Landing landing);

  // -- the coordination loop
  void cancel() override;
  void finish() override;

  // -- gRPC
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  void read_on();
  void let_go();

  grpc::ClientContext context_;
  const etcdserverpb::WatchRequest request_;
  const WatchSteps steps_;
  std::optional<Calls::Landing> landing_;
  etcdserverpb::WatchResponse response_;  // gRPC's while a read is under way, else the loop's
  CallStatus status_;                     // written by the last callback
  bool cancelled_ = false;                // the loop's
  // The stream may not end while the loop may start a read on it.
  std::atomic<bool> held_{true};
};

}  // namespace weir::etcd
