#pragma once

// What would become of a request now, as far as this replica knows: goes at once, goes once a unit
// has been claimed, waits, or is turned away. A forecast for an operator, by the same questions in
// the same order as a request asks them; nothing is taken, and nobody is held by asking. Whether a
// throttle would give leave is not known without asking it, unless others of the tenant's wait
// before it. Pure.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "coordination/allowance.h"
#include "coordination/base/clock.h"
#include "coordination/limit.h"
#include "proxy/cooldown.h"
#include "proxy/http/local_reply.h"

namespace weir {

// What is known of a resource's units, here and in the store.
struct UnitFacts {
  Limit limit;                            // the rule's
  std::int64_t units = 0;                 // this replica's part of it, where it is shared out
  bool known = false;                     // somebody here has asked for one before
  Allowance::Summary summary{};           // if so
  std::optional<std::int64_t> claimed{};  // by all replicas; nothing: the store does not say
  bool store_needed = true;               // without the store nobody passes
  bool counted_here = false;              // by this process alone, which claims nothing
};

// The same, for the window that is running.
struct Usage {
  std::int64_t used = 0, left = 0, in_hand = 0;
  std::size_t waiting = 0;
  bool full = false;                // nothing to claim before something changes
  std::optional<WallTime> more_at;  // when units come free by themselves
};
Usage usage_of(const UnitFacts& facts, WallTime now);

struct ProspectFacts {
  UnitFacts units;
  Cooldown::Verdict cooldown{};     // what the upstream's gate would say
  std::size_t before_throttle = 0;  // who wait for its leave, if one of the tenant's is among them
  bool draining = false;
  bool room_full = false;  // as many wait in this process as may
};

struct Prospect {
  enum class What { go, claim, wait, refuse };
  What what = What::go;
  std::optional<http::Denial> reason{};   // what it waits for, or is turned away by
  std::optional<WallTime> not_before{};   // wait; nothing: nobody can tell
  std::size_t ahead = 0;                  // in the line for a unit
  std::chrono::milliseconds patience{0};  // refuse: behind so much waiting
  std::string_view because{};             // go: why nothing holds it back
};
Prospect foresee(const ProspectFacts& facts, const Instant& now);

std::string_view to_string(Prospect::What what);
// "waits for a unit, until 2026-11-18T05:05:00.000Z at the earliest, behind 3 others"
std::string in_words(const Prospect& prospect);

}  // namespace weir
