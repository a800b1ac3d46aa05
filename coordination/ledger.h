#pragma once

// Claims and returns as transactions, and what their answers mean. Pure.
//
// Why the limit is hard. A claim of n units knows that `used` units were claimed at revision R,
// both from one answer, and n <= limit - used. Its transaction succeeds only if no key of the range
// was put after R. Keys only get fewer without a put (returns, expiry, deletion by hand), and a
// key's units never change, so at that moment at most `used` are claimed, and after it at most used
// + n. Replacing a key by one with fewer units is a put, but in the same transaction as the
// deletion, and lowers the usage. Old knowledge makes a claim fail, never overshoot.
//
// Why an unknown outcome is safe. The same transaction is sent again: it has a compare that its own
// first key does not exist, so at most one copy is ever applied. If a copy fails and the key is
// there under our lease, an earlier one was applied. If it is not there, none was so far; should
// one come to be applied later all the same, then as a claim that keeps the limit, whose units
// nobody spends.

#include <cstdint>
#include <string>
#include <string_view>

#include "coordination/books.h"
#include "coordination/store.h"

namespace weir {

// `claims` is the prefix that the resource's claims have in common.
Txn claim_txn(const std::string& claims, const Account& known, const Claim& claim, WallTime at);
Txn read_txn(const std::string& claims);
// Deletes whole claims.
Txn delete_txn(const std::string& claims, std::vector<std::string> keys);
// Puts a smaller claim in the place of one.
Txn replace_txn(const std::string& claims, const std::string& key, Put smaller);

// What a read of the range tells.
struct Reading {
  Account account;
  std::uint64_t own_seq = 0;         // the highest among our own keys
  std::vector<const KeyValue*> own;  // views of the answer
};
Reading read_claims(const TxnAnswer& answer, std::string_view owner);

enum class ClaimResult { granted, found_applied, conflict };
ClaimResult claim_result(const TxnAnswer& answer, const Claim& claim);

}  // namespace weir
