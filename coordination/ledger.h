#pragma once

// Claims and returns as transactions, and what their answers mean. Pure.
//
// Why the limit is hard. A claim of n units knows that `used` units were claimed at revision R,
// both from one answer, and n <= limit - used. Its transaction succeeds only if no key of the range
// was created after R. Without a new key the usage only falls: keys are deleted (returns, expiry,
// by hand), and a key that stays never has more units than it had at R. So at that moment at most
// `used` are claimed, and after it at most used + n.
// Old knowledge makes a claim fail, never overshoot.
//
// Why a key that stays never has more. It is put again in two ways, shrunk or renewed, with fewer
// units or as many, and each has a compare that its value is the one that we last gave it: units
// and time. Both change with such a put (a renewed claim has a later time), so a copy that comes
// late finds another value and does nothing. And a claim puts no key that is there: its numbers are
// above all of ours that were there at R, and none was created since. Neither way creates a key, so
// neither makes other replicas' claims fail.
//
// Why a renewed key counts for both uses. Its unit was used a window ago or longer when it is used
// again, so at most one of its uses lies within any window, and the key stands for that one.
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

// Keys in one transaction, beside the read that comes with them.
inline constexpr std::size_t kMaxKeys = kMaxOps - 2;

// `claims` is the prefix that the resource's claims have in common.
Txn claim_txn(const std::string& claims, const Account& known, const Claim& claim);
Txn read_txn(const std::string& claims);
// Deletes keys, if all of them are there under the leases that we know them by: a copy that comes
// late, or from an earlier process of this name, must not take another claim's key with it. Where
// one is not, the reading shows which are.
Txn delete_txn(const std::string& claims, std::span<const OwnKey> keys);
// Puts the keys of claims of ours again, as `renewed` says: under its lease, with its time, and as
// many units as before or fewer. Keys that it leaves out are deleted.
Txn renew_txn(const std::string& claims, std::span<const Claim> old,
              std::span<const Claim> renewed);
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
