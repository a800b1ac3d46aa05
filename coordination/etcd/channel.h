#pragma once

// The connection to one member: made once and kept for as long as the store lives. gRPC connects it
// anew by itself, and never sends a call twice over it.

#include <memory>
#include <string>

#include "coordination/options.h"

namespace grpc {
class Channel;
}

namespace weir::etcd {

// host:port of an endpoint's URL, without what else it may hold.
std::string address_of(const std::string& endpoint);

// http:// is spoken in the clear. https:// is trusted by tls_ca (empty: by what the system trusts),
// with tls_cert and tls_key as our own name if they are given; files that change are taken over
// within seconds, for connections made from then on.
std::shared_ptr<grpc::Channel> make_channel(const std::string& endpoint,
                                            const EtcdOptions& options);

}  // namespace weir::etcd
