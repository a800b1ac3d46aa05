#include "coordination/etcd/messages.h"

#include "proto/etcd_rpc.pb.h"

namespace weir::etcd {
namespace {

namespace pb = etcdserverpb;

pb::Compare::CompareResult result_of(Compare::Is is) {
  switch (is) {
    case Compare::Is::equal:
      return pb::Compare::EQUAL;
    case Compare::Is::not_equal:
      return pb::Compare::NOT_EQUAL;
    case Compare::Is::less:
      return pb::Compare::LESS;
    case Compare::Is::greater:
      return pb::Compare::GREATER;
  }
  return pb::Compare::EQUAL;
}

void fill_target(Compare& compare, pb::Compare& to) {
  switch (compare.target) {
    case Compare::Target::version:
      to.set_target(pb::Compare::VERSION);
      return to.set_version(compare.number);
    case Compare::Target::create:
      to.set_target(pb::Compare::CREATE);
      return to.set_create_revision(compare.number);
    case Compare::Target::mod:
      to.set_target(pb::Compare::MOD);
      return to.set_mod_revision(compare.number);
    case Compare::Target::lease:
      to.set_target(pb::Compare::LEASE);
      return to.set_lease(compare.number);
    case Compare::Target::value:
      to.set_target(pb::Compare::VALUE);
      return to.set_value(std::move(compare.value));
  }
}

template <class Message>
void fill_range(KeyRange& range, Message& to) {
  to.set_key(std::move(range.key));
  to.set_range_end(std::move(range.end));
}

// Reads are linearizable, which is what a request says nothing about.
void fill_op(Read& read, pb::RequestOp& to) {
  pb::RangeRequest& range = *to.mutable_request_range();
  fill_range(read.range, range);
  range.set_limit(read.limit);
  range.set_count_only(read.count_only);
}

void fill_op(Put& put, pb::RequestOp& to) {
  pb::PutRequest& request = *to.mutable_request_put();
  request.set_key(std::move(put.key));
  request.set_value(std::move(put.value));
  request.set_lease(put.lease);
}

void fill_op(Delete& erase, pb::RequestOp& to) {
  fill_range(erase.range, *to.mutable_request_delete_range());
}

KeyValue key_of(mvccpb::KeyValue& from) {
  return {.key = std::move(*from.mutable_key()),
          .value = std::move(*from.mutable_value()),
          .create_revision = from.create_revision(),
          .mod_revision = from.mod_revision(),
          .version = from.version(),
          .lease = from.lease()};
}

OpAnswer answer_of(pb::ResponseOp& op) {
  if (op.has_response_put()) return PutAnswer{};
  if (op.has_response_delete_range()) return DeleteAnswer{op.response_delete_range().deleted()};
  ReadAnswer answer;
  pb::RangeResponse& range = *op.mutable_response_range();
  answer.count = range.count();
  answer.keys.reserve(static_cast<std::size_t>(range.kvs_size()));
  for (mvccpb::KeyValue& key : *range.mutable_kvs()) answer.keys.push_back(key_of(key));
  return answer;
}

}  // namespace

void fill(Txn txn, pb::TxnRequest& request) {
  for (Compare& compare : txn.compares) {
    pb::Compare& to = *request.add_compare();
    to.set_result(result_of(compare.is));
    fill_target(compare, to);
    fill_range(compare.range, to);
  }
  for (Op& op : txn.then) {
    std::visit([&](auto& one) { fill_op(one, *request.add_success()); }, op);
  }
  for (Op& op : txn.otherwise) {
    std::visit([&](auto& one) { fill_op(one, *request.add_failure()); }, op);
  }
}

void fill(KeyRange range, Revision from, pb::WatchRequest& request) {
  pb::WatchCreateRequest& create = *request.mutable_create_request();
  fill_range(range, create);
  create.set_start_revision(from);
}

TxnAnswer answer_of(pb::TxnResponse& response) {
  TxnAnswer answer;
  answer.succeeded = response.succeeded();
  answer.revision = response.header().revision();
  answer.answers.reserve(static_cast<std::size_t>(response.responses_size()));
  for (pb::ResponseOp& op : *response.mutable_responses()) answer.answers.push_back(answer_of(op));
  return answer;
}

std::vector<Step> steps_of(pb::WatchResponse& response) {
  std::vector<Step> steps;
  for (mvccpb::Event& event : *response.mutable_events()) {
    const Revision revision = event.kv().mod_revision();
    if (steps.empty() || steps.back().first != revision) steps.push_back({revision, {}});
    steps.back().second.push_back(
        {event.type() == mvccpb::Event::DELETE ? WatchEvent::Kind::deleted : WatchEvent::Kind::put,
         key_of(*event.mutable_kv())});
  }
  return steps;
}

}  // namespace weir::etcd
