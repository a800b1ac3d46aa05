#pragma once

// Whether an attempt may be sent now, learned from what became of earlier ones, so that an upstream
// gets about what it can serve and no tenant all of it. One for each upstream that asks for it,
// shared by all workers: any thread. Memory and work do not grow with the number of tenants.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "coordination/base/clock.h"
#include "coordination/base/random.h"
#include "proxy/attempt/status_code.h"
#include "proxy/throttle/tenant_hash.h"
#include "proxy/upstream_options.h"

namespace weir {

// What an operator is shown.
struct ThrottleFacts {
  double rate = 0;  // per second and bucket; sfb: requests under way
  int buckets = 0;
  int in_use = 0;             // buckets asked for within the last second
  std::uint64_t dropped = 0;  // leaves whose outcome nobody told
};

class Throttle {
 public:
  // Leave for one attempt, to be settled once, with what became of it; or a denial. A ticket that
  // is dropped counts as Load::unknown. Its throttle outlives it.
  class Ticket {
   public:
    Ticket() = default;  // no leave
    Ticket(Ticket&& other) noexcept { *this = std::move(other); }
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { drop(); }

    explicit operator bool() const { return throttle_ != nullptr; }
    // Throws std::logic_error on a denial, and on a ticket that was settled before.
    void settle(Load load, SteadyTime now);
    // Of a denial: when asking again may help.
    std::chrono::nanoseconds retry_in() const { return retry_in_; }

   private:
    friend class Throttle;
    void drop();

    Throttle* throttle_ = nullptr;
    std::chrono::nanoseconds retry_in_{0};
    Places places_, next_places_;  // the latter in sfb's second set
    std::uint32_t generation_ = 0;
  };

  virtual ~Throttle() = default;
  static Ticket denied(std::chrono::nanoseconds retry_in);
  virtual Ticket accept(std::string_view tenant, SteadyTime now) = 0;
  virtual ThrottleFacts facts(SteadyTime now) const = 0;
  // Goes on from a rate that was learned before.
  virtual void start_at(double rate) = 0;

 protected:
  // What an implementation keeps in a ticket.
  struct Held {
    const Places& places;
    const Places& next_places;
    std::uint32_t generation;
  };
  Ticket granted(const Places& places, const Places& next_places, std::uint32_t generation);
  virtual void settled(const Held& held, Load load, SteadyTime now) = 0;
  virtual void dropped(const Held& held) = 0;
};

// Bounds, steps and parameters come from the options; nullptr: off.
std::unique_ptr<Throttle> make_throttle(const ThrottleOptions& options, Random& random,
                                        SteadyTime now);

}  // namespace weir
