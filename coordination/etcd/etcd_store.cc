#include "coordination/etcd/etcd_store.h"

#include <algorithm>
#include <utility>

#include "coordination/etcd/lineage.h"
#include "coordination/etcd/members.h"
#include "coordination/etcd/messages.h"
#include "coordination/etcd/watches.h"
#include "proto/etcd_rpc.pb.h"

namespace weir {

namespace pb = etcdserverpb;
using etcd::CallStatus;
using std::chrono::milliseconds;
using std::chrono::seconds;

class EtcdStore::Impl {
 public:
  Impl(EtcdOptions options, const Clock& clock, Random& random, etcd::Post post,
       EtcdNotices notices)
      : options_(std::move(options)),
        clock_(clock),
        notices_(std::move(notices)),
        calls_(std::move(post)),
        members_(options_, clock, random, calls_, hooks()),
        watches_(
            clock, calls_, members_, [this](std::uint64_t cluster) { saw(cluster); },
            [this](std::string what) { warn(std::move(what)); }) {}

  // Which answers tell the revision that the cluster has, and not only the member that was asked.
  enum class Tells { revision, nothing };

  template <class Response, class T, class Request>
  void ask(Request request, Tells tells, std::function<T(Response&)> convert,
           Callback<T> callback) {
    const SteadyTime deadline = this->deadline();
    auto send = [this, deadline, tells, request = std::move(request), callback,
                 convert = std::move(convert)](const etcd::Use& use) mutable {
      const auto left = std::chrono::ceil<milliseconds>(deadline - clock_.steady_now());
      use.wire->send(
          std::move(request), {std::max(left, milliseconds{1}), use.token},
          etcd::Done<Response>(
              [this, use, tells, known = lineage_.known(), callback = std::move(callback),
               convert = std::move(convert)](const CallStatus& status, Response& response) {
                members_.ended(use, status);
                if (status.ok()) {
                  saw(response.header().cluster_id(), response.header().revision(), tells, known);
                }
                if (!callback) return;
                if (status.ok()) return callback(convert(response));
                callback(StoreError{etcd::fault_of(status).kind, status.message});
              }));
    };
    members_.ask(deadline, std::move(send), [callback](std::string why) {
      if (callback) callback(StoreError{StoreError::Kind::not_applied, std::move(why)});
    });
  }

  SteadyTime deadline() const { return clock_.steady_now() + options_.timeout; }
  etcd::Calls& calls() { return calls_; }
  etcd::Watches& watches() { return watches_; }

  void run() {
    members_.run();
    watches_.run();
  }
  std::optional<SteadyTime> next_due() const {
    const auto members = members_.next_due(), watches = watches_.next_due();
    if (!members || !watches) return members ? members : watches;
    return std::min(*members, *watches);
  }

 private:
  etcd::Members::Hooks hooks() {
    return {.warn = [this](std::string what) { warn(std::move(what)); },
            .up =
                [this] {
                  if (notices_.up) notices_.up();
                },
            .down =
                [this](std::string why) {
                  if (notices_.down) notices_.down(std::move(why));
                },
            .left = [this] { watches_.lose_all(); },
            .seen = [this](std::uint64_t cluster) { saw(cluster); }};
  }
  void warn(std::string what) {
    if (notices_.warn) notices_.warn(std::move(what));
  }

  // Answered by one member from its own memory: its revision may lag behind.
  void saw(std::uint64_t cluster) { saw(cluster, 0, Tells::nothing, lineage_.known()); }
  void saw(std::uint64_t cluster, Revision revision, Tells tells,
           const etcd::Lineage::Known& known) {
    const auto told = tells == Tells::revision ? std::optional(revision) : std::nullopt;
    if (!lineage_.replaced_by(cluster, told, known)) return;
    watches_.lose_all();
    if (notices_.replaced) notices_.replaced();
  }

  const EtcdOptions options_;
  const Clock& clock_;
  const EtcdNotices notices_;
  etcd::Lineage lineage_;
  etcd::Calls calls_;
  etcd::Members members_;
  etcd::Watches watches_;
};

EtcdStore::EtcdStore(EtcdOptions options, const Clock& clock, Random& random, etcd::Post post,
                     EtcdNotices notices)
    : impl_(std::make_unique<Impl>(std::move(options), clock, random, std::move(post),
                                   std::move(notices))) {}

EtcdStore::~EtcdStore() = default;

void EtcdStore::txn(Txn txn, Callback<TxnAnswer> callback) {
  // Without an op it is answered from one member's memory.
  const auto tells =
      txn.then.empty() && txn.otherwise.empty() ? Impl::Tells::nothing : Impl::Tells::revision;
  pb::TxnRequest request;
  etcd::fill(std::move(txn), request);
  impl_->ask<pb::TxnResponse, TxnAnswer>(
      std::move(request), tells,
      [](pb::TxnResponse& response) { return etcd::answer_of(response); }, std::move(callback));
}

void EtcdStore::grant(LeaseId lease, seconds ttl, Callback<LeaseTerm> callback) {
  if (lease <= 0) {  // etcd would choose one
    return impl_->calls().defer([callback = std::move(callback)] {
      if (callback) callback(StoreError{StoreError::Kind::not_applied, "bad lease id"});
    });
  }
  pb::LeaseGrantRequest request;
  request.set_id(lease);
  request.set_ttl(ttl.count());
  impl_->ask<pb::LeaseGrantResponse, LeaseTerm>(
      request, Impl::Tells::revision,
      [](const pb::LeaseGrantResponse& response) { return LeaseTerm{seconds{response.ttl()}}; },
      std::move(callback));
}

void EtcdStore::keep_alive(LeaseId lease, Callback<LeaseTerm> callback) {
  pb::LeaseKeepAliveRequest request;
  request.set_id(lease);
  impl_->ask<pb::LeaseKeepAliveResponse, LeaseTerm>(
      request, Impl::Tells::nothing,
      [](const pb::LeaseKeepAliveResponse& response) { return LeaseTerm{seconds{response.ttl()}}; },
      std::move(callback));
}

void EtcdStore::revoke(LeaseId lease, Callback<LeaseTerm> callback) {
  pb::LeaseRevokeRequest request;
  request.set_id(lease);
  impl_->ask<pb::LeaseRevokeResponse, LeaseTerm>(
      request, Impl::Tells::revision, [](const pb::LeaseRevokeResponse&) { return LeaseTerm{}; },
      std::move(callback));
}

std::unique_ptr<Watch> EtcdStore::watch(KeyRange range, Revision from, WatchHandler handler) {
  return impl_->watches().add(std::move(range), from, impl_->deadline(), std::move(handler));
}

void EtcdStore::run() { impl_->run(); }

std::optional<SteadyTime> EtcdStore::next_due() const { return impl_->next_due(); }

}  // namespace weir
