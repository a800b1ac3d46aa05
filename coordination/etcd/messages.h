#pragma once

// Transactions and events, between the store's types and etcd's messages. Pure functions.

#include <span>
#include <utility>
#include <vector>

#include "coordination/store.h"

namespace etcdserverpb {
class TxnRequest;
class TxnResponse;
class WatchRequest;
class WatchResponse;
}  // namespace etcdserverpb

namespace weir::etcd {

void fill(Txn txn, etcdserverpb::TxnRequest& request);
void fill(KeyRange range, Revision from, etcdserverpb::WatchRequest& request);

// Takes what it can out of the response.
TxnAnswer answer_of(etcdserverpb::TxnResponse& response);

// One entry for each revision, in order.
using Step = std::pair<Revision, std::vector<WatchEvent>>;
std::vector<Step> steps_of(etcdserverpb::WatchResponse& response);

}  // namespace weir::etcd
