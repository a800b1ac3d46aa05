#pragma once

// The attempts of one hedged call: several may be under way, the first good answer is taken and the
// others are cancelled at once. When to send and whom to take is HedgeState's to decide. Owned by
// the call's Attempts, on its loop; run() joins everything that it began.
//
// Each sends the body as far as it has come. When that becomes too large to be kept, the attempt
// that has sent most goes on alone, and the others are cancelled.

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "proxy/attempt/attempts.h"
#include "proxy/attempt/hedge_state.h"

namespace weir {

class Hedges {
 public:
  Hedges(Attempts& attempts, const HedgingPolicy& policy);

  http::Task<Attempts::Result> run();
  // Ends whatever is under way: the client has gone, or the call's time is over.
  void cancel();

 private:
  struct Hedge {
    Hedge(Hedges& hedges, Attempt* given);
    std::unique_ptr<Attempts::Further> own;  // nullptr for the first
    Attempt& attempt;
    http::Beside task;
    http::Deadlines::Entry deadline;
    bool timed_out = false;
    enum class Standing { open, judged, cancelled };
    Standing standing = Standing::open;
    Attempts::Result result = Attempts::Result::no_answer;
  };
  using Result = Attempts::Result;

  SteadyTime now() const;
  void start(Hedge& hedge);
  http::Task<void> run_one(Hedge& hedge);
  Hedge* judge_ended();
  http::Task<bool> send_next();
  std::optional<SteadyTime> due() const;
  void wait_until(SteadyTime next);
  void go_on_alone(const RequestBody::Place& place);
  http::Task<Result> finish(Hedge& taken);

  Attempts& attempts_;
  HedgeState state_;
  std::vector<std::unique_ptr<Hedge>> hedges_;
  std::deque<Hedge*> ended_;  // and not judged yet
  Hedge* last_ended_ = nullptr;
  http::Alarm alarm_;
  http::Wakeup wakeup_;
};

}  // namespace weir
