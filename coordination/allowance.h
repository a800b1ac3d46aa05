#pragma once

// One resource on this replica: the units it has claimed and not spent, and the line of requests
// that wait for them. Workers take units and leave; the coordinator brings units and says when
// there are none. Any thread; one short lock. Every unit that comes in goes out exactly once: to a
// Permit, back to the coordinator, or to nobody because its time was over (lost).
//
// Where no other process counts a limit, nothing need be claimed: a sole allowance has all units of
// it in hand as soon as a window begins. It begins one when it is first asked in it, so that this
// costs no more than a unit does, or when the coordinator says so because somebody waits. Windows
// only go forward, and what was used of one is known until it is over, so no window ever gives more
// than its limit.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "coordination/base/clock.h"
#include "coordination/batch.h"
#include "coordination/limit.h"
#include "coordination/line.h"
#include "coordination/window.h"

namespace weir {

// Whether a sole allowance counts these by itself. Sliding units come back one by one, a window
// after each was used: the coordinator sees to that.
inline bool counted_here(Mode mode) { return mode != Mode::sliding; }

enum class Refusal { limit, store_unavailable, queue_full, draining };

// What a client is told about the limit: units left as far as this replica knows, and when there
// are more. Nothing is known before the first claim.
struct Standing {
  std::int64_t left = 0;
  std::optional<std::chrono::seconds> more_in;  // rounded up; nothing: whenever a request ends
};

class Allowance;

// The right to one attempt. Ends by itself: a unit that was not spent goes to the next in line, one
// that was is settled as its mode says.
class Permit {
 public:
  Permit() = default;
  Permit(std::shared_ptr<Allowance> allowance, std::shared_ptr<Batch> batch)
      : allowance_(std::move(allowance)), batch_(std::move(batch)) {}
  Permit(Permit&& other) noexcept = default;
  Permit& operator=(Permit&& other) noexcept;
  ~Permit() { settle(); }

  explicit operator bool() const { return batch_ != nullptr; }
  // Whether the attempt may still be sent: the window and the lease have not ended meanwhile.
  bool good(const Instant& now) const { return batch_->good(now); }
  // The attempt's first byte has gone out.
  void spend();
  bool spent() const { return spent_; }
  void settle();

 private:
  std::shared_ptr<Allowance> allowance_;
  std::shared_ptr<Batch> batch_;  // nullptr: none, or settled
  bool spent_ = false;
};

// Somebody who asks for a unit. Lives until it was answered: a waiter that take() put into the line
// must leave() it, or be woken, before it goes.
struct Waiter : Line::Place {
  // Called once, by any thread, after the answer is set, if take() said `waiting`.
  void (*wake)(void* who) = nullptr;
  void* who = nullptr;
  std::string_view tenant;
  bool patient = true;  // false: answered as soon as it is known that no unit is free

  Permit permit;                   // the answer: this,
  std::optional<Refusal> refusal;  // or this
  std::shared_ptr<Allowance> allowance;
};

// Requests that wait in this process, all resources together.
struct WaitingRoom {
  std::atomic<std::size_t> waiting{0};
  std::atomic<std::size_t> max{100'000};
  std::atomic<bool> draining{false};
};

class Allowance {
 public:
  // What a sole allowance shares with those of the same process, and of the same policy.
  struct Sole {
    ForwardTime& forward;
    std::atomic<std::uint64_t>&claimed, &returned;  // units, ever
  };
  // `ask` tells the coordinator that this resource wants it; called without the lock.
  Allowance(const Clock& clock, WaitingRoom& room, std::function<void()> ask,
            std::optional<Sole> sole = std::nullopt)
      : clock_(clock), room_(room), ask_(std::move(ask)), sole_(sole) {}

  // -- for workers
  enum class Taken { granted, refused, waiting };
  // `self` is this. Puts a permit or a refusal into the waiter, or the waiter into the line.
  Taken take(const std::shared_ptr<Allowance>& self, Waiter& waiter, Queue order,
             const Instant& now);
  // True: it is out of the line and will not be woken. False: it has been answered, and its wake is
  // on the way.
  bool leave(Waiter& waiter);
  Standing standing(const Instant& now) const;

  // -- for the coordinator
  struct Demand {
    std::size_t waiting = 0;
    std::int64_t in_hand = 0;
    std::int64_t out = 0;     // units that will be heard of again
    std::uint64_t taken = 0;  // ever
    std::int64_t idle = 0;    // of those in hand: not needed since reset_idle()
    std::int64_t lost = 0;    // since the last look: their time was over before they were spent
    std::vector<std::shared_ptr<Batch>> finished;  // since then: nothing of it left here
    std::vector<std::shared_ptr<Batch>> surplus;   // since then: one unit each, for others to claim
  };
  // Answers every ask() so far.
  Demand look();
  void reset_idle();
  void bring(std::shared_ptr<Batch> batch);
  // Unspent units of the batch, at most so many: no longer to be spent here.
  std::int64_t withdraw(const std::shared_ptr<Batch>& batch, std::int64_t at_most);
  // Its units go back one by one as they come; says how many were in hand, which go now.
  std::int64_t recall(const std::shared_ptr<Batch>& batch);
  // None of its units is spent or comes back from here on; says how many were in hand.
  std::int64_t write_off(const std::shared_ptr<Batch>& batch);
  enum class Whom { impatient, everybody };
  void refuse(Refusal why, Whom whom);
  // It is known now that they have to wait: the last ones are too many.
  void refuse_excess();
  struct State {
    Mode mode = Mode::started;
    Window window{};
    std::int64_t limit = 0, used = 0;       // by the last answer
    bool full = false;                      // nothing to claim before something changes,
    WallTime full_until = WallTime::max();  // or before then
    bool store_down = false;                // nobody knows
    bool contested = false;                 // other replicas have claims too
    bool above_share = false;               // this one has more than its part of the limit
    std::int64_t low_water = 0;             // ask when this few units are in hand
    std::optional<WallTime> more_at;        // when units come free by themselves
  };
  void set(const State& state);
  // Sole: the limit from here on, and the time, for which it opens a window if
  // that is another.
  void open(const Limit& limit, WallTime forward);
  // The same for one that is not asked yet: the window is opened when it is.
  void open_when_asked(const Limit& limit);
  struct Summary {
    State state;
    std::size_t waiting = 0;
    std::int64_t in_hand = 0;
  };
  Summary summary() const;  // any thread
  // Nobody waits and no unit is here.
  bool idle(const Instant& now);

 private:
  friend class Permit;
  using Woken = std::vector<Waiter*>;

  void sent(const std::shared_ptr<Batch>& batch);
  void give_back(const std::shared_ptr<Batch>& batch, bool spent);
  std::shared_ptr<Batch> take_unit(const Instant& now);
  void drop_spoiled(const Instant& now);
  void hand_on(const Instant& now, Woken& woken);
  void answer(Waiter& waiter, Woken& woken);
  void finish_if_over(const std::shared_ptr<Batch>& batch);
  bool stays(const Batch& batch, SteadyTime now) const;
  std::int64_t take_back(const std::shared_ptr<Batch>& batch);
  bool want_ask();
  static void wake(const Woken& woken);
  // Of a sole allowance:
  struct Opened {
    Window window;
    std::shared_ptr<Batch> batch;
    std::int64_t used = 0;
  };
  void open_window(WallTime forward);
  void put_in_hand(std::int64_t units);
  void take_back_unit(const std::shared_ptr<Batch>& batch, bool spent);

  const Clock& clock_;
  WaitingRoom& room_;
  const std::function<void()> ask_;
  const std::optional<Sole> sole_;

  mutable std::mutex mutex_;  // guards all below
  Line line_;
  std::size_t impatient_ = 0;
  std::vector<std::shared_ptr<Batch>> batches_;  // with units in hand, the oldest first
  std::vector<std::shared_ptr<Batch>> finished_, surplus_;
  std::int64_t in_hand_ = 0, out_ = 0, lost_ = 0, idle_ = 0;
  std::uint64_t taken_ = 0;
  bool asked_ = false;
  State state_;
  std::optional<Limit> limit_;  // what it counts by itself; nothing: it has what is brought
  WallTime opens_at_ = WallTime::max();  // the next window
  // The one of now first, then what a reload has left that may count again if it is taken back.
  std::vector<Opened> opened_;
};

}  // namespace weir
