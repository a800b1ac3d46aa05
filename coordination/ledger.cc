#include "coordination/ledger.h"

#include <algorithm>

#include "coordination/keyspace.h"

namespace weir {
namespace {

Compare exists(const std::string& key, Compare::Is is) {
  return {{key, ""}, Compare::Target::create, is, 0};
}

const ReadAnswer* reading_of(const TxnAnswer& answer) {
  for (const OpAnswer& op : answer.answers) {
    if (const auto* read = std::get_if<ReadAnswer>(&op)) return read;
  }
  return nullptr;
}

}  // namespace

Txn claim_txn(const std::string& claims, const Account& known, const Claim& claim, WallTime at) {
  const KeyRange range = keys_under(claims);
  Txn txn;
  txn.compares.push_back({range, Compare::Target::mod, Compare::Is::less, known.revision + 1});
  txn.compares.push_back(exists(claim.keys.front(), Compare::Is::equal));
  const std::string value = claim_value(claim.units_per_key, at);
  for (const std::string& key : claim.keys) txn.then.push_back(Put{key, value, claim.lease->id});
  txn.otherwise.push_back(Read{range});
  return txn;
}

Txn read_txn(const std::string& claims) {
  Txn txn;
  txn.then.push_back(Read{keys_under(claims)});
  return txn;
}

Txn delete_txn(const std::string& claims, std::vector<std::string> keys) {
  Txn txn;
  for (std::string& key : keys) txn.then.push_back(Delete{{std::move(key), ""}});
  txn.then.push_back(Read{keys_under(claims)});
  return txn;
}

Txn replace_txn(const std::string& claims, const std::string& key, Put smaller) {
  Txn txn;
  txn.compares.push_back(exists(key, Compare::Is::greater));
  txn.then.push_back(Delete{{key, ""}});
  txn.then.push_back(std::move(smaller));
  txn.then.push_back(Read{keys_under(claims)});
  txn.otherwise.push_back(Read{keys_under(claims)});
  return txn;
}

Reading read_claims(const TxnAnswer& answer, std::string_view owner) {
  Reading reading;
  reading.account.revision = answer.revision;
  const ReadAnswer* read = reading_of(answer);
  if (!read) return reading;
  for (const KeyValue& entry : read->keys) {
    reading.account.used += claimed_units(entry.value);
    if (Keyspace::owner_of(entry.key) != owner) {
      reading.account.others = true;
    } else if (const auto seq = Keyspace::seq_of(entry.key)) {
      reading.own_seq = std::max(reading.own_seq, *seq);
      reading.own.push_back(&entry);
    }
  }
  return reading;
}

ClaimResult claim_result(const TxnAnswer& answer, const Claim& claim) {
  if (answer.succeeded) return ClaimResult::granted;
  if (const ReadAnswer* read = reading_of(answer)) {
    for (const KeyValue& entry : read->keys) {
      // Under another lease it is one that an earlier process of the same name has left.
      if (entry.key == claim.keys.front() && entry.lease == claim.lease->id) {
        return ClaimResult::found_applied;
      }
    }
  }
  return ClaimResult::conflict;
}

}  // namespace weir
