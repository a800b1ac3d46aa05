#include "proxy/throttle/throttle.h"

#include <stdexcept>
#include <utility>

#include "proxy/throttle/fair_throttle.h"
#include "proxy/throttle/sfb.h"

namespace weir {
namespace {

using Kind = ThrottleOptions::Kind;

AimdOptions aimd_options(const ThrottleOptions& options) {
  return {options.initial_rate, options.floor,    options.ceiling,
          options.increase,     options.decrease, std::chrono::nanoseconds{0}};
}

}  // namespace

Throttle::Ticket& Throttle::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  drop();
  throttle_ = std::exchange(other.throttle_, nullptr);
  retry_in_ = other.retry_in_;
  places_ = other.places_;
  next_places_ = other.next_places_;
  generation_ = other.generation_;
  return *this;
}

void Throttle::Ticket::settle(Load load, SteadyTime now) {
  Throttle* const throttle = std::exchange(throttle_, nullptr);
  if (!throttle) throw std::logic_error("a throttle's ticket that is none, or settled already");
  throttle->settled({places_, next_places_, generation_}, load, now);
}

void Throttle::Ticket::drop() {
  if (Throttle* const throttle = std::exchange(throttle_, nullptr)) {
    throttle->dropped({places_, next_places_, generation_});
  }
}

Throttle::Ticket Throttle::granted(const Places& places, const Places& next_places,
                                   std::uint32_t generation) {
  Ticket ticket;
  ticket.throttle_ = this;
  ticket.places_ = places;
  ticket.next_places_ = next_places;
  ticket.generation_ = generation;
  return ticket;
}

Throttle::Ticket Throttle::denied(std::chrono::nanoseconds retry_in) {
  Ticket ticket;
  ticket.retry_in_ = retry_in;
  return ticket;
}

std::unique_ptr<Throttle> make_throttle(const ThrottleOptions& options, Random& random,
                                        SteadyTime now) {
  if (options.kind == Kind::off) return nullptr;
  if (options.kind == Kind::sfb) {
    SfbOptions sfb;
    sfb.capacity = aimd_options(options);
    sfb.levels = options.probes;
    sfb.bins = options.buckets;
    sfb.rehash = options.rehash;
    return std::make_unique<Sfb>(sfb, random, now);
  }
  FairThrottleOptions fair;
  fair.rate = aimd_options(options);
  fair.buckets = options.kind == Kind::aimd ? 1 : options.buckets;
  fair.probes = options.kind == Kind::bloom ? options.probes : 1;
  fair.rehash = options.rehash;
  fair.burst = options.burst;
  return std::make_unique<FairThrottle>(fair, random, now);
}

}  // namespace weir
