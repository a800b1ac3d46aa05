#pragma once

// What the coordinator keeps about one resource: the window, what is known of its usage, the claims
// held, and the transaction under way. Plain data of the coordination loop.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordination/allowance.h"
#include "coordination/leases.h"
#include "coordination/store.h"

namespace weir {

// Usage as one answer of the store told it. Nothing asked yet: 0 at revision 0, which only an empty
// range can confirm.
struct Account {
  Revision revision = 0;
  std::int64_t used = 0;
  bool others = false;  // some of it is other replicas'
};

struct Claim {
  std::uint64_t number = 0;
  std::vector<std::string> keys;
  std::int64_t units_per_key = 1;
  std::int64_t shrunk_from = 0;  // units of its one key before some went back; 0: none did
  std::int64_t unrecorded = 0;   // units that the store does not know of; then there are no keys
  WallTime at{};                 // when it was made, as its keys say
  std::shared_ptr<LeaseSlot> lease;
  std::shared_ptr<Batch> batch;

  std::int64_t units() const {
    return static_cast<std::int64_t>(keys.size()) * units_per_key + unrecorded;
  }
  void shrink(std::int64_t by) {
    if (shrunk_from == 0) shrunk_from = units_per_key;
    units_per_key -= by;
  }
};

// A key that this replica has put, and the lease it put it under.
struct OwnKey {
  std::string key;
  LeaseId lease = 0;
};

// Units to be given back to the store.
struct Return {
  std::uint64_t claim = 0;
  std::int64_t units = 0;
  enum class Why { unspent, ended } why = Why::unspent;
};

struct Pending {
  enum class Kind { claim, renewal, give_back, refresh };
  Kind kind;
  std::uint64_t number = 0;
  Txn txn{};
  std::vector<Claim> claims{};    // claim: the one that it is to be; renewal: all of them
  std::vector<OwnKey> old{};      // renewal: the keys as they were
  std::vector<Return> returns{};  // give_back: what it gives back
  SteadyTime first_sent{};
  int sends = 0;
  bool under_way = false;
};

struct Books {
  bool open = false;
  Limit limit;
  Window window{};
  std::string claims;  // the prefix of their keys
  Account account;
  std::map<std::uint64_t, Claim> held;
  std::vector<std::pair<SteadyTime, std::uint64_t>> retiring;  // sliding: when which claim ends
  std::vector<Return> returns;
  // Keys of former windows and modes that nothing is held of any more, with their leases: they
  // stay, and count again if a reload is taken back.
  std::map<std::string, LeaseId> left;
  std::vector<OwnKey> orphans;  // of no claim that we hold: a late copy's
  // in_flight: copies of a claim may still be applied, before this time.
  std::optional<SteadyTime> late_copies_until;
  std::optional<Pending> pending;

  bool full = false;  // nothing to claim before something changes
  // Revisions: of the last reading, and of the last change heard of that freed units. Claims that
  // were won since a reading only add to the account, so it may be too high.
  Revision read_at = 0, freed_at = 0;
  bool stale = false;  // something was freed: there may be less used than the account says
  int conflicts = 0;   // in a row
  // Who has a fair share lets others come first: until then, when there is room. Once nobody has
  // come, this replica is alone, as far as it knows.
  std::optional<SteadyTime> polite_until;
  bool alone = false;
  SteadyTime retry_at{};  // no transaction before
  std::optional<SteadyTime> unanswered_since;
  bool store_down = false;

  std::uint64_t taken = 0;  // at the last sample
  SteadyTime sampled_at{};
  double rate = 0;  // units per second
  std::chrono::duration<double> txn_time{0};
  SteadyTime idle_since{};       // units in hand are watched for being needed
  std::uint64_t idle_taken = 0;  // by then
  SteadyTime wake_at = SteadyTime::max();
  std::uint64_t wake_order = 0;  // among those of the same time

  // Units of claims that are held, and not about to go back.
  std::int64_t in_use() const;
  // Takes out claims whose units have all had their time, but none under `lease`; at most so many
  // keys and no more than it takes to have so many units.
  std::vector<Claim> take_ended(std::int64_t units, std::size_t max_keys,
                                const std::shared_ptr<LeaseSlot>& lease);
  // Whether a key of this replica is one that it has, is about to have, or has left where it is.
  bool knows(const std::string& key) const;
  // Units claimed that the store does not know of.
  std::int64_t unrecorded() const;
  // For the store; where it does not know of them there are simply less.
  void put_back(const Return& part);
};

}  // namespace weir
