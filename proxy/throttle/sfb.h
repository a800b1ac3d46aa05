#pragma once

// Stochastic fair BLUE as admission: each tenant has one bin in each of several levels, a bin knows
// how many of its requests are under way and with which probability more are denied. A tenant is
// denied by the smallest probability among its bins, so that only one that shares every bin with a
// heavy tenant suffers with it. Where all of them are certain, the tenant is in the penalty box: a
// small rate that everybody in it shares.
//
//   bin_size = 1.5 * capacity / bins;  capacity: requests under way that the upstream stands, as
//              learned (AimdRate)
//   asked:     under way >= bin_size:      p = min(1, p + d1)
//              under way < bin_size / 2:   p = max(0, p - d2)
//              at most one change of a bin within the hold time
//   success:   capacity + increase, if each of its bins was limiting within the last second: a
//              tenant that asked could have been denied for all of its own
//   rehash:    a request enters two sets of bins and leaves both. For the last tenth of the
//              interval the second set's probabilities are learned too, and what a tenant is held
//              to is taken over by those of its bins there that are full; then that set takes over
//
// Any thread, one short lock.

#include <array>
#include <mutex>
#include <vector>

#include "proxy/throttle/aimd_rate.h"
#include "proxy/throttle/throttle.h"
#include "proxy/throttle/token_bucket.h"

namespace weir {

struct SfbOptions {
  AimdOptions capacity;  // requests under way
  int levels = 3;
  int bins = 17;  // in each level
  double d1 = 0.005, d2 = 0.001;
  std::chrono::nanoseconds hold{std::chrono::milliseconds{100}};
  std::chrono::nanoseconds rehash{std::chrono::seconds{60}};
  double penalty_rate = 10, penalty_burst = 20;
};

class Sfb final : public Throttle {
 public:
  Sfb(const SfbOptions& options, Random& random, SteadyTime now);

  Ticket accept(std::string_view tenant, SteadyTime now) override;
  ThrottleFacts facts(SteadyTime now) const override;
  void start_at(double capacity) override { capacity_.start_at(capacity); }

  // With which probability a tenant is denied; 1: it is in the penalty box.
  double probability(std::string_view tenant) const;
  // Of the set in use, by level: what is under way, and the smallest and largest of its bins.
  struct Level {
    long under_way = 0;
    int least = 0, most = 0;
  };
  std::vector<Level> under_way() const;

 private:
  struct Bin {
    int under_way = 0;
    double p = 0;
    SteadyTime changed = SteadyTime::min();
    SteadyTime limiting_at = SteadyTime::min();
    SteadyTime asked = SteadyTime::min();
  };
  struct Set {
    TenantHash hash;
    std::uint32_t generation = 0;
    std::vector<Bin> bins;
  };

  void settled(const Held& held, Load load, SteadyTime now) override;
  void dropped(const Held& held) override;
  void advance(SteadyTime now);
  double bin_size() const;
  double adjust(Set& set, const Places& places, SteadyTime now) const;
  void take_over(double p, const Places& next_places);
  bool limiting(const Held& held, SteadyTime now) const;
  Places find(const Set& set, std::string_view tenant) const;
  void leave(const Held& held);
  Set& in_use() { return sets_[generation_ % 2]; }
  const Set& in_use() const { return sets_[generation_ % 2]; }
  Set& next() { return sets_[(generation_ + 1) % 2]; }

  const SfbOptions options_;
  AimdRate capacity_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::array<Set, 2> sets_;  // one of an even generation, one of an odd
  std::uint32_t generation_ = 0;
  SteadyTime turned_at_;
  TokenBucket penalty_;
  std::uint64_t dropped_ = 0;
};

}  // namespace weir
