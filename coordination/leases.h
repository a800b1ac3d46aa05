#pragma once

// The leases that this replica's claims hang on: one for each window (granted a little ahead, and
// left to run out), one for each slice of sliding ones, and one that is kept alive for in_flight. A
// lease only clears up after a replica that is gone; what may be spent is decided by its fence,
// which closes well before the store can have ended the lease. Owned by the coordination loop.
//
// How long is long enough, W being the window's length:
//   aligned    TTL = rest of the window + 60 s, fence = rest + 20 s. Replicas whose clocks differ
//   by up
//              to 40 s thus never see another's claims end while they may still use that window.
//   sliding    claimed within a slice, spent within the hold time, counted for W after that:
//              TTL = slice + hold + W + 10 s, fence = slice + hold.
//   in_flight  TTL = 15 s, kept alive every 5 s; fence = the last keepalive that succeeded, counted
//              from its sending, + 12 s.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "coordination/allowance.h"
#include "coordination/base/random.h"
#include "coordination/limit.h"
#include "coordination/store.h"
#include "coordination/window.h"

namespace weir {

struct LeaseSlot {
  enum class Kind { aligned, sliding, in_flight };
  enum class State { granting, ready, over };
  Kind kind = Kind::aligned;
  Window window{};  // aligned: that; sliding: the slice
  LeaseId id = 0;
  std::chrono::seconds ttl{0};
  SteadyTime first_sent{};
  SteadyTime claims_until{};  // later claims need another lease
  std::shared_ptr<Fence> fence;
  State state = State::granting;
  bool used = false;       // by a claim, and not only made ahead
  bool under_way = false;  // a grant or a keepalive
  int sends = 0;
  SteadyTime next_send{};  // of a grant, a keepalive, or the grant of the next window's lease
  std::vector<std::function<void()>> waiting;  // for it to be ready
};

// How long a sliding unit may be held before it is spent, and how claims are grouped.
std::chrono::milliseconds sliding_hold(std::chrono::seconds window);
std::chrono::seconds sliding_slice(std::chrono::seconds window);
// What a sliding unit's use may take to reach the upstream, more or less: a window is counted from
// arrival to arrival there.
SteadyTime::duration sliding_guard(std::chrono::seconds window);

class Leases {
 public:
  using Shared = std::shared_ptr<LeaseSlot>;
  struct Terms {
    std::chrono::seconds skew;  // how far the replicas' wall clocks may be apart
    std::chrono::seconds kept;  // the TTL of the one that is kept alive
  };
  // `lost` is called for a lease that ended, or may have, before its time.
  Leases(Store& store, Random& random, const Clock& clock, Terms terms,
         std::function<void(const Shared&)> lost);

  // The lease for a claim made now. One that is not ready calls `ready` once when it is. nullptr:
  // the window has been in use for as long as it may be, though the wall clock, set back, says that
  // it still lasts; nothing can be claimed before the next.
  Shared get(Mode mode, const Window& window, const Instant& now, std::function<void()> ready);
  // The store says that it does not exist.
  void gone(const Shared& slot);
  // The store knows none of them any more; says how many there were.
  std::size_t forget();
  // Whether an id is one that this process has chosen, lately.
  bool ours(LeaseId id) const;
  void run(const Instant& now);
  std::optional<SteadyTime> next_due() const;

 private:
  using Key = std::tuple<LeaseSlot::Kind, WallTime, std::chrono::seconds>;

  Shared make(const Key& key, LeaseSlot::Kind kind, const Window& window,
              std::chrono::seconds counted, const Instant& now);
  void note_use(const Key& key, LeaseSlot& slot);
  void send(const Shared& slot);
  void keep_alive(const Shared& slot);
  void on_granted(const Shared& slot, Answer<LeaseTerm> answer);
  SteadyTime::duration backoff(int sends);

  Store& store_;
  Random& random_;
  const Clock& clock_;
  const Terms terms_;
  const std::function<void(const Shared&)> lost_;
  std::map<Key, Shared> slots_;
  // Aligned windows: how long each may be used, as foreseen when it was first used. The latest few.
  std::map<Key, SteadyTime> use_until_;
};

}  // namespace weir
