#include "coordination/etcd/errors.h"

#include <gtest/gtest.h>

namespace weir::etcd {
namespace {

using Kind = StoreError::Kind;
using Member = Fault::Member;

// gRPC's numbers, as they are on the wire.
enum Code {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

struct Row {
  int code;
  const char* message;
  Kind kind;
  Member member;
};

void expect_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(std::to_string(row.code) + " " + row.message);
    const Fault fault = fault_of({row.code, row.message});
    EXPECT_EQ(fault.kind, row.kind);
    EXPECT_EQ(fault.member, row.member);
  }
}

TEST(EtcdErrors, ARefusalBeforeAnyEffectIsNotApplied) {
  expect_rows({
      {kInvalidArgument, "etcdserver: key is not provided", Kind::not_applied, Member::fine},
      {kInvalidArgument, "etcdserver: too many operations in txn request", Kind::not_applied,
       Member::fine},
      {kInvalidArgument, "etcdserver: duplicate key given in txn request", Kind::not_applied,
       Member::fine},
      {kInvalidArgument, "etcdserver: request is too large", Kind::not_applied, Member::fine},
      {kPermissionDenied, "etcdserver: permission denied", Kind::not_applied, Member::fine},
      {kResourceExhausted, "etcdserver: too many requests", Kind::not_applied, Member::fine},
      {kOutOfRange, "etcdserver: too large lease TTL", Kind::not_applied, Member::fine},
  });
}

TEST(EtcdErrors, ATokenThatIsNotKnownAnyMoreAsksForALogin) {
  expect_rows({
      {kUnauthenticated, "etcdserver: invalid auth token", Kind::not_applied, Member::login},
      {kInvalidArgument, "etcdserver: revision of auth store is old", Kind::not_applied,
       Member::login},
      {kInvalidArgument, "etcdserver: user name is empty", Kind::not_applied, Member::login},
  });
}

TEST(EtcdErrors, LeasesHaveErrorsOfTheirOwn) {
  expect_rows({
      {kNotFound, "etcdserver: requested lease not found", Kind::lease_gone, Member::fine},
      {kFailedPrecondition, "etcdserver: lease already exists", Kind::lease_exists, Member::fine},
  });
}

TEST(EtcdErrors, ACallThatFoundNoConnectionWasNeverSent) {
  expect_rows({{kUnavailable,
                "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "
                "Failed to connect to remote host: Connection refused",
                Kind::not_applied, Member::unusable}});
}

TEST(EtcdErrors, WhatMayHaveBeenAppliedIsUnknown) {
  expect_rows({
      {kDeadlineExceeded, "Deadline Exceeded", Kind::unknown, Member::timed_out},
      {kCancelled, "CANCELLED", Kind::unknown, Member::fine},
      {kUnavailable, "etcdserver: request timed out", Kind::unknown, Member::timed_out},
      {kUnavailable, "etcdserver: request timed out, possibly due to previous leader failure",
       Kind::unknown, Member::timed_out},
      {kUnavailable, "etcdserver: request timed out, possibly due to connection lost",
       Kind::unknown, Member::timed_out},
      {kUnavailable, "etcdserver: leader changed", Kind::unknown, Member::fine},
      {kUnavailable, "etcdserver: server stopped", Kind::unknown, Member::unusable},
      {kUnavailable, "etcdserver: no leader", Kind::unknown, Member::unusable},
      {kUnavailable, "Socket closed", Kind::unknown, Member::unusable},
      {kUnavailable, "recvmsg:Connection reset by peer", Kind::unknown, Member::unusable},
      {kUnavailable, "keepalive watchdog timeout", Kind::unknown, Member::unusable},
      {kResourceExhausted, "etcdserver: mvcc: database space exceeded", Kind::unknown,
       Member::fine},
      {kInternal, "Received RST_STREAM with error code 2", Kind::unknown, Member::fine},
      {kUnknown, "raft proposal dropped", Kind::unknown, Member::fine},
  });
}

TEST(EtcdErrors, WhatIsNotKnownIsUnknown) {
  expect_rows({
      {kNotFound, "etcdserver: member not found", Kind::unknown, Member::fine},
      {kFailedPrecondition, "etcdserver: something else", Kind::unknown, Member::fine},
      {kOutOfRange, "etcdserver: mvcc: required revision is a future revision", Kind::unknown,
       Member::fine},
      {kUnauthenticated, "who are you", Kind::unknown, Member::fine},
      {kResourceExhausted, "Received message larger than max", Kind::unknown, Member::fine},
      {kUnimplemented, "unknown service", Kind::unknown, Member::fine},
      {kDataLoss, "etcdserver: corrupt cluster", Kind::unknown, Member::fine},
      {99, "", Kind::unknown, Member::fine},
  });
}

TEST(EtcdErrors, AWatchMayBeRefusedForWantOfRights) {
  EXPECT_TRUE(
      refused_for_rights("rpc error: code = PermissionDenied desc = etcdserver: permission "
                         "denied"));
  EXPECT_TRUE(refused_for_rights("etcdserver: invalid auth token"));
  EXPECT_FALSE(refused_for_rights("etcdserver: mvcc: required revision has been compacted"));
}

}  // namespace
}  // namespace weir::etcd
