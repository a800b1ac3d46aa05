#pragma once

// This replica's presence in the store: one key of its name, under a lease that is kept alive. A
// name belongs to whoever put its key first; another process of the same name waits until that key
// is gone. Owned by the coordination loop.
//
// The lease lasts 10 s and is kept alive every 3 s, so that a name whose process has died is free
// again within 15 s, with what the store takes to notice.

#include <functional>
#include <optional>
#include <string>

#include "coordination/base/clock.h"
#include "coordination/base/random.h"
#include "coordination/store.h"

namespace weir {

class Session {
 public:
  enum class State { absent, held, name_taken };

  // `changed` is called when the state is another than before.
  Session(Store& store, Random& random, const Clock& clock, std::string key, std::string value,
          std::function<void()> changed)
      : store_(store),
        random_(random),
        clock_(clock),
        key_(std::move(key)),
        value_(std::move(value)),
        changed_(std::move(changed)) {}

  State state() const { return state_; }

  void run(SteadyTime now);
  std::optional<SteadyTime> next_due() const;
  // The key, as somebody saw it last: nothing if it is not there. Saves waiting for the next try.
  void saw(std::optional<LeaseId> lease);
  // Whatever was put is gone.
  void start_over();
  // Gives the name up; `done` is called when that was answered.
  void end(std::function<void()> done);

 private:
  enum class Step { grant, put, keep };

  void grant();
  void put();
  void keep_alive();
  void on_put(const TxnAnswer& answer);
  // The next step, so long from now; anything that is still under way for the last one is void.
  void next(Step step, SteadyTime::duration in);
  void again(SteadyTime::duration at_most);
  void set(State state);
  template <class T>
  Callback<T> if_current(std::function<void(Answer<T>)> handle);

  Store& store_;
  Random& random_;
  const Clock& clock_;
  const std::string key_, value_;
  const std::function<void()> changed_;

  State state_ = State::absent;
  Step step_ = Step::grant;
  LeaseId lease_ = 0;
  SteadyTime due_{};
  SteadyTime kept_at_{};  // when the last keepalive that succeeded was sent
  std::uint64_t era_ = 0;
  bool under_way_ = false, ended_ = false;
};

}  // namespace weir
