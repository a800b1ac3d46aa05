#include "proxy/throttle/fair_throttle.h"

#include <algorithm>
#include <limits>

namespace weir {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr double kLeastCapacity = 2;
// A bucket that is nearly empty limits its tenants just as one that has denied.
constexpr double kNearlyEmpty = 2;
constexpr seconds kLimitingFor{1};
constexpr seconds kInUseFor{1};
// A rehash comes up to this part of the interval early or late.
constexpr double kJitter = 0.2;

}  // namespace

FairThrottle::FairThrottle(const FairThrottleOptions& options, Random& random, SteadyTime now)
    : options_(options),
      rate_(options.rate),
      hash_(random),
      rehash_at_(now),
      buckets_(static_cast<std::size_t>(options.buckets)) {
  std::lock_guard lock(mutex_);
  rehash(now);
}

double FairThrottle::capacity(double rate) const {
  return std::max(kLeastCapacity, options_.burst.count() * rate);
}

Places FairThrottle::find(std::string_view tenant) const {
  if (options_.buckets == 1) return distinct_places(0, 1, 1);
  return distinct_places(hash_(tenant), options_.probes, options_.buckets);
}

Throttle::Ticket FairThrottle::accept(std::string_view tenant, SteadyTime now) {
  const double rate = rate_.value();
  const double most = capacity(rate);
  std::lock_guard lock(mutex_);
  if (now >= rehash_at_) rehash(now);
  const Places places = find(tenant);
  double least = std::numeric_limits<double>::infinity();
  for (const auto at : places) {
    Bucket& bucket = buckets_[at];
    bucket.asked = now;
    bucket.tokens.refill(rate, most, now);
    least = std::min(least, bucket.tokens.tokens());
    if (bucket.tokens.tokens() < kNearlyEmpty) {
      bucket.limiting_at.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }
  }
  if (least < 1) return denied(until_one(least, rate));
  for (const auto at : places) buckets_[at].tokens.take();
  return granted(places, {}, 0);
}

bool FairThrottle::limiting(const Places& places, SteadyTime now) const {
  const auto since = (now - kLimitingFor).time_since_epoch().count();
  return std::any_of(places.begin(), places.end(), [&](auto at) {
    return buckets_[at].limiting_at.load(std::memory_order_relaxed) >= since;
  });
}

void FairThrottle::settled(const Held& held, Load load, SteadyTime now) {
  if (load == Load::too_much) {
    rate_.overload(now);
  } else if (load == Load::borne && limiting(held.places, now)) {
    rate_.success();
  }
}

void FairThrottle::dropped(const Held&) { dropped_.fetch_add(1, std::memory_order_relaxed); }

void FairThrottle::rehash(SteadyTime now) {
  hash_.turn();
  const double factor = 1 - kJitter + 2 * kJitter * hash_.fraction();
  rehash_at_ = now + std::chrono::duration_cast<nanoseconds>(options_.rehash * factor);
  const double rate = rate_.value();
  double least = std::numeric_limits<double>::infinity();
  for (Bucket& bucket : buckets_) {
    bucket.tokens.refill(rate, capacity(rate), now);
    least = std::min(least, bucket.tokens.tokens());
  }
  for (Bucket& bucket : buckets_) bucket.tokens.keep_at_most(least);
}

Places FairThrottle::places_of(std::string_view tenant) const {
  std::lock_guard lock(mutex_);
  return find(tenant);
}

double FairThrottle::tokens_of(std::string_view tenant, SteadyTime now) const {
  const double rate = rate_.value();
  std::lock_guard lock(mutex_);
  double least = std::numeric_limits<double>::infinity();
  for (const auto at : find(tenant)) {
    TokenBucket copy = buckets_[at].tokens;
    copy.refill(rate, capacity(rate), now);
    least = std::min(least, copy.tokens());
  }
  return least;
}

ThrottleFacts FairThrottle::facts(SteadyTime now) const {
  std::lock_guard lock(mutex_);
  const auto in_use = std::count_if(buckets_.begin(), buckets_.end(), [&](const Bucket& bucket) {
    return bucket.asked >= now - kInUseFor;
  });
  return {rate_.value(), options_.buckets, static_cast<int>(in_use), dropped_.load()};
}

}  // namespace weir
