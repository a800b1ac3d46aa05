#pragma once

// Claims and returns as transactions, and what their answers mean. Pure.
//
// Why the limit is hard. A claim of n units knows that `used` units were claimed at revision R,
// both from one answer, and n <= limit - used. Its transaction succeeds only if no key of the range
// was created after R. Without a new key the usage only falls: keys are deleted (returns, expiry,
// by hand), and the units of a key that stays only shrink. So at that moment at most `used` are
// claimed, and after it at most used + n. Old knowledge makes a claim fail, never overshoot.
//
// Shrinking a key puts it anew and so has a compare of its own: that its value is the one that we
// last gave it. A key's units fall with each such put, so a copy that comes late finds another
// value and does nothing. It creates no key, so it does not make other replicas' claims fail.
//
// Why an unknown outcome is safe. The same transaction is sent again: it has a compare that its own
// first key does not exist, so at most one copy is ever applied. If a copy fails and the key is
// there under our lease, an earlier one was applied. If it is not there, none was so far; should
// one come to be applied later all the same, then as a claim that keeps the limit, whose units
// nobody spends.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "coordination/books.h"
#include "coordination/store.h"

namespace weir {

// `claims` is the prefix that the resource's claims have in common.
Txn claim_txn(const std::string& claims, const Account& known, const Claim& claim);
Txn read_txn(const std::string& claims);
// Deletes keys, if all of them are there under the leases that we know them by: a copy that comes
// late, or from an earlier process of this name, must not take another claim's key with it. Where
// one is not, the reading shows which are.
Txn delete_txn(const std::string& claims, std::span<const OwnKey> keys);
// Puts a claim in the place of others of ours that have as many units or more. The usage does not
// rise, so it needs not be known: nobody else can make it fail, and once applied it cannot be
// again.
Txn renew_txn(const std::string& claims, std::span<const OwnKey> old, const Claim& claim);
// Takes so many units from a claim of one key, which keeps some.
Txn shrink_txn(const std::string& claims, const Claim& claim, std::int64_t by);

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
