#pragma once

// Token buckets that tenants are hashed onto, all filled at one rate that is learned (AimdRate):
// what a bucket's tenants may send a second. One bucket is plain AIMD; many of them with one probe
// are stochastic fair queueing without the queues (sfq); with several probes, which must all allow,
// they are a Bloom filter of buckets (bloom).
//
//   capacity  = max(2, burst * T), with the T of now
//   allow iff every probed bucket has a token; then one is taken from each
//   success   T + increase, if a probed bucket was limiting within the last second: it denied or
//             had less than two tokens
//   overload  T * decrease
//   rehash    at random times around the interval: tenants move to other buckets. All buckets are
//             brought down to the emptiest one, so that nobody finds more than he left
//
// Any thread: the buckets have one short lock, settling takes none.

#include <atomic>
#include <mutex>
#include <vector>

#include "proxy/throttle/aimd_rate.h"
#include "proxy/throttle/throttle.h"
#include "proxy/throttle/token_bucket.h"

namespace weir {

struct FairThrottleOptions {
  AimdOptions rate;  // requests per second and bucket
  int buckets = 17;
  int probes = 1;  // at most kMaxProbes
  std::chrono::nanoseconds rehash{std::chrono::seconds{5}};
  std::chrono::duration<double> burst{0.5};
};

class FairThrottle final : public Throttle {
 public:
  FairThrottle(const FairThrottleOptions& options, Random& random, SteadyTime now);

  Ticket accept(std::string_view tenant, SteadyTime now) override;
  ThrottleFacts facts(SteadyTime now) const override;
  void start_at(double rate) override { rate_.start_at(rate); }

  double rate() const { return rate_.value(); }
  // Where a tenant's tokens are now.
  Places places_of(std::string_view tenant) const;
  // As if a request came now, without one.
  double tokens_of(std::string_view tenant, SteadyTime now) const;

 private:
  struct Bucket {
    TokenBucket tokens;                    // guarded by mutex_
    SteadyTime asked = SteadyTime::min();  // guarded by mutex_
    std::atomic<SteadyTime::rep> limiting_at{SteadyTime::min().time_since_epoch().count()};
  };

  void settled(const Held& held, Load load, SteadyTime now) override;
  void dropped(const Held& held) override;
  Places find(std::string_view tenant) const;
  bool limiting(const Places& places, SteadyTime now) const;
  double capacity(double rate) const;
  void rehash(SteadyTime now);

  const FairThrottleOptions options_;
  AimdRate rate_;
  std::atomic<std::uint64_t> dropped_{0};
  mutable std::mutex mutex_;
  TenantHash hash_;              // guarded by mutex_
  SteadyTime rehash_at_;         // guarded by mutex_
  std::vector<Bucket> buckets_;  // the vector is const
};

}  // namespace weir
