#include "tests/etcd/fake_member.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <mutex>
#include <utility>

#include "proto/etcd_rpc.grpc.pb.h"

namespace weir::test {

namespace pb = etcdserverpb;

struct FakeMember::Server final : pb::Maintenance::Service, pb::KV::Service {
  grpc::Status Status(grpc::ServerContext*, const pb::StatusRequest*,
                      pb::StatusResponse* response) override {
    const std::lock_guard lock(mutex);
    response->mutable_header()->set_cluster_id(1);
    response->set_version(status.version);
    response->set_leader(status.has_leader ? 1 : 0);
    response->set_islearner(status.is_learner);
    return grpc::Status::OK;
  }
  grpc::Status Txn(grpc::ServerContext*, const pb::TxnRequest*,
                   pb::TxnResponse* response) override {
    ++transactions;
    response->mutable_header()->set_cluster_id(1);
    response->mutable_header()->set_revision(revision);
    return grpc::Status::OK;
  }

  std::mutex mutex;
  FakeStatus status;  // guarded by mutex
  std::atomic<int> transactions{0};
  std::atomic<std::int64_t> revision{1};
  int port = 0;
  std::unique_ptr<grpc::Server> running;
};

FakeMember::FakeMember(FakeStatus status) : server_(std::make_unique<Server>()) {
  server_->status = std::move(status);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &server_->port);
  builder.RegisterService(static_cast<pb::Maintenance::Service*>(server_.get()));
  builder.RegisterService(static_cast<pb::KV::Service*>(server_.get()));
  server_->running = builder.BuildAndStart();
}

FakeMember::~FakeMember() { server_->running->Shutdown(); }

std::string FakeMember::endpoint() const {
  return "http://127.0.0.1:" + std::to_string(server_->port);
}

int FakeMember::transactions() const { return server_->transactions; }

void FakeMember::set(FakeStatus status) {
  const std::lock_guard lock(server_->mutex);
  server_->status = std::move(status);
}

void FakeMember::set_revision(std::int64_t revision) { server_->revision = revision; }

}  // namespace weir::test
