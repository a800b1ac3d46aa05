#include "coordination/ledger.h"

#include <algorithm>

#include "coordination/keyspace.h"

namespace weir {
namespace {

const ReadAnswer* reading_of(const TxnAnswer& answer) {
  for (const OpAnswer& op : answer.answers) {
    if (const auto* read = std::get_if<ReadAnswer>(&op)) return read;
  }
  return nullptr;
}

std::string value_of(const Claim& claim) {
  return claim_value(claim.units_per_key, claim.at, claim.shrunk_from);
}

// At most once: its first key must not be there.
void add_puts(Txn& txn, const Claim& claim) {
  txn.compares.push_back(
      {{claim.keys.front(), ""}, Compare::Target::create, Compare::Is::equal, 0});
  const std::string value = value_of(claim);
  for (const std::string& key : claim.keys) txn.then.push_back(Put{key, value, claim.lease->id});
}

void add_deletes(Txn& txn, std::span<const OwnKey> keys) {
  for (const OwnKey& own : keys) {
    txn.compares.push_back({{own.key, ""}, Compare::Target::lease, Compare::Is::equal, own.lease});
    txn.then.push_back(Delete{{own.key, ""}});
  }
}

}  // namespace

Txn claim_txn(const std::string& claims, const Account& known, const Claim& claim) {
  const KeyRange range = keys_under(claims);
  Txn txn;
  txn.compares.push_back({range, Compare::Target::create, Compare::Is::less, known.revision + 1});
  add_puts(txn, claim);
  txn.otherwise.push_back(Read{range});
  return txn;
}

Txn read_txn(const std::string& claims) {
  Txn txn;
  txn.then.push_back(Read{keys_under(claims)});
  return txn;
}

Txn delete_txn(const std::string& claims, std::span<const OwnKey> keys) {
  Txn txn;
  add_deletes(txn, keys);
  txn.then.push_back(Read{keys_under(claims)});
  txn.otherwise.push_back(Read{keys_under(claims)});
  return txn;
}

Txn renew_txn(const std::string& claims, std::span<const Claim> old,
              std::span<const Claim> renewed) {
  Txn txn;
  for (std::size_t i = 0; i < old.size(); ++i) {
    const std::string before = value_of(old[i]), after = value_of(renewed[i]);
    const std::vector<std::string>& stay = renewed[i].keys;
    for (const std::string& key : old[i].keys) {
      txn.compares.push_back({{key, ""}, Compare::Target::value, Compare::Is::equal, 0, before});
      if (std::find(stay.begin(), stay.end(), key) == stay.end()) {
        txn.then.push_back(Delete{{key, ""}});
      } else {
        txn.then.push_back(Put{key, after, renewed[i].lease->id});
      }
    }
  }
  txn.then.push_back(Read{keys_under(claims)});
  txn.otherwise.push_back(Read{keys_under(claims)});
  return txn;
}

Txn shrink_txn(const std::string& claims, const Claim& claim, std::int64_t by) {
  const std::string& key = claim.keys.front();
  Claim shrunk = claim;
  shrunk.shrink(by);
  Txn txn;
  txn.compares.push_back(
      {{key, ""}, Compare::Target::value, Compare::Is::equal, 0, value_of(claim)});
  txn.then.push_back(Put{key, value_of(shrunk), claim.lease->id});
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
