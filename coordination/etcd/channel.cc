#include "coordination/etcd/channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <string_view>

namespace weir::etcd {
namespace {

constexpr std::string_view kTls = "https://";
constexpr unsigned kLookAtFilesEverySeconds = 10;

grpc::ChannelArguments arguments() {
  grpc::ChannelArguments args;
  // A transaction that was sent may have been applied: only its owner may send it again.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A member that comes back is found soon. The least is what one attempt may take.
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  // Notices a silent member while a watch waits for it. etcd hangs up on pings faster than 5 s, and
  // on pings without a call.
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 7'000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3'000);
  args.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);               // pings that etcd would count too
  // Stores in one process share no connection, and no wait for one.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // What was read must arrive whole: how much it is, is decided by who asks.
  args.SetMaxReceiveMessageSize(-1);
  return args;
}

std::shared_ptr<grpc::ChannelCredentials> tls(const EtcdOptions& options) {
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsChannelCredentialsOptions tls;
  const bool named = !options.tls_cert.empty() && !options.tls_key.empty();
  if (named || !options.tls_ca.empty()) {
    tls.set_certificate_provider(std::make_shared<FileWatcherCertificateProvider>(
        named ? options.tls_key : "", named ? options.tls_cert : "", options.tls_ca,
        kLookAtFilesEverySeconds));
  }
  if (named) tls.watch_identity_key_cert_pairs();
  if (!options.tls_ca.empty()) tls.watch_root_certs();
  return grpc::experimental::TlsCredentials(tls);
}

}  // namespace

std::string address_of(const std::string& endpoint) {
  std::string_view rest = endpoint;
  if (const auto scheme = rest.find("://"); scheme != std::string_view::npos) {
    rest.remove_prefix(scheme + 3);
  }
  if (const auto user = rest.rfind('@'); user != std::string_view::npos) {
    rest.remove_prefix(user + 1);
  }
  return std::string(rest.substr(0, rest.find('/')));
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& endpoint,
                                            const EtcdOptions& options) {
  return grpc::CreateCustomChannel(
      "dns:///" + address_of(endpoint),
      endpoint.starts_with(kTls) ? tls(options) : grpc::InsecureChannelCredentials(), arguments());
}

}  // namespace weir::etcd
