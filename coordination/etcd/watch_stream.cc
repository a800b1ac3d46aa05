#include "coordination/etcd/watch_stream.h"

#include <utility>

#include "coordination/etcd/context.h"

namespace weir::etcd {

WatchStream::WatchStream(etcdserverpb::WatchRequest request, const std::string& token,
                         WatchSteps steps)
    : request_(std::move(request)), steps_(std::move(steps)) {
  set_metadata(context_, token);
}

void WatchStream::start(etcdserverpb::Watch::Stub& stub, Calls::Landing landing) {
  landing_ = std::move(landing);
  stub.async()->Watch(&context_, this);
  AddHold();
  StartWrite(&request_);
  StartRead(&response_);
  StartCall();
}

void WatchStream::cancel() {
  cancelled_ = true;
  context_.TryCancel();
  let_go();
}

void WatchStream::finish() { steps_.over(status_); }

void WatchStream::OnReadDone(bool ok) {
  if (!ok || !landing_->post([this] { read_on(); })) let_go();
}

void WatchStream::OnDone(const grpc::Status& status) {
  status_ = call_status(status);
  landing_->land();
}

// The loop has a response. It is still there: it lands only after it was let go of.
void WatchStream::read_on() {
  if (cancelled_) return;
  steps_.response(response_);
  if (cancelled_) return;
  response_.Clear();
  StartRead(&response_);
}

void WatchStream::let_go() {
  if (held_.exchange(false)) RemoveHold();
}

}  // namespace weir::etcd
