#pragma once

// How replicas agree: alone in one process, or through etcd.

#include <chrono>
#include <string>
#include <vector>

namespace weir {

// What happens to requests while the store does not answer.
enum class OnStoreFailure { reject, share, allow };

struct EtcdOptions {
  std::vector<std::string> endpoints{"http://127.0.0.1:2379"};
  std::string prefix = "/weir/v1";
  std::chrono::milliseconds timeout{1000};  // one transaction
  std::string username;
  std::string password_file;
  std::string tls_ca, tls_cert, tls_key;  // file names
};

struct CoordinationOptions {
  enum class Kind { embedded, etcd };

  Kind kind = Kind::embedded;
  int replicas = 1;       // embedded only: this process enforces its share of limit / replicas
  int replica_index = 0;  // 0 … replicas - 1
  EtcdOptions etcd;
  OnStoreFailure on_store_failure = OnStoreFailure::reject;
};

}  // namespace weir
