#pragma once

// Judges a run from outside: by what the store did, revision by revision, and by what reached the
// upstream. It knows what keys look like and nothing of how the core works; what it keeps is
// counted anew from the store's events. README.md lists the checks by name.
//
// Arrivals on a lease that the simulation ended before its time are left out of the counts: nobody
// can have known.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>

#include "coordination/limit.h"
#include "coordination/store.h"
#include "tests/simulation/world.h"

namespace weir::sim {

struct Violation {
  std::string check, text;
};

// Why the store changes: one copy of a replica's transaction, a lease whose time had come, or one
// that was taken away.
struct Cause {
  enum class Kind { txn, expiry, injected };
  Kind kind = Kind::txn;
  std::int64_t limit = 0;  // of the sender, when it first sent it
};

// One attempt as the upstream sees it, with what the permit said about it.
struct Arrival {
  std::string range;  // of claim keys: "<rule>:<resource>@<label>"
  LeaseId lease = 0;
  Mode mode = Mode::started;
  std::uint64_t claim = 0;       // unique over the run
  std::int64_t claim_units = 0;  // what the replica holds of it
  seconds window{0};
  WallTime clock;         // the replica's
  std::int64_t most = 0;  // sliding and sole: the highest limit that it may have been let in by
  bool sole = false;      // on a unit that the store knows nothing of: lease and claim say nothing
};

class Judge {
 public:
  explicit Judge(const Events& events) : events_(events) {}

  // -- the store
  void set_cause(Cause cause) { cause_ = cause; }
  void on_revision(Revision revision, std::span<const WatchEvent> events);
  std::int64_t used(const std::string& range) const;
  std::int64_t counted(const std::string& range) const;  // arrivals
  // When all of its units were claimed for the last time.
  SteadyTime full_at(const std::string& range) const;
  std::size_t keys() const { return keys_.size(); }
  std::int64_t in_flight() const;  // units claimed for it, of all resources

  // -- the upstream; the number is for ended()
  std::uint64_t arrived(const Arrival& arrival);
  void ended(std::uint64_t number);

  bool lease_was_lost(LeaseId lease) const { return injected_.contains(lease); }

  void fail(std::string check, std::string text);
  const std::optional<Violation>& violation() const { return violation_; }
  // Of everything that was seen: two runs of a seed have the same.
  std::uint64_t digest() const { return digest_; }
  void note(std::uint64_t what) { digest_ = (digest_ ^ what) * 0x100000001B3u + 0x9E37; }

  struct Place {
    std::string range;
    std::string owner;
  };
  static std::optional<Place> place_of(std::string_view key);

 private:
  struct Key {
    std::string range;
    LeaseId lease = 0;
    std::int64_t units = 0;
  };
  struct UnderLease {
    std::int64_t units = 0;    // in the store
    std::int64_t counted = 0;  // arrivals that must be covered by them
  };
  struct Range {
    std::int64_t used = 0;
    std::int64_t most = 0;   // the highest limit it was claimed under, since it was last empty
    std::int64_t limit = 0;  // that it was last claimed under
    SteadyTime full_at{};
    std::int64_t counted = 0;
    std::map<LeaseId, UnderLease> by_lease;
    std::deque<std::pair<SteadyTime, LeaseId>> recent;  // sliding
  };
  struct Served {
    std::string range;
    LeaseId lease = 0;
    std::uint64_t claim = 0;
    bool lost = false;  // with its lease
  };

  void put(const WatchEvent& event);
  void deleted(const WatchEvent& event);
  void forget_lease(LeaseId lease);
  void forget_old(Range& range, seconds window);
  void check_covered(const std::string& name, const Range& range);
  void check_counts(const Arrival& arrival, const Range& range);

  const Events& events_;
  Cause cause_;
  std::unordered_map<std::string, Key> keys_;
  std::map<std::string, Range, std::less<>> ranges_;
  std::set<LeaseId> injected_, expired_;
  std::unordered_map<std::uint64_t, std::int64_t> by_claim_;
  std::map<std::uint64_t, Served> served_;  // in_flight and until_done, until they end
  std::uint64_t arrivals_ = 0;
  std::uint64_t digest_ = 0xCBF29CE484222325u;
  std::optional<Violation> violation_;
};

}  // namespace weir::sim
