#pragma once

// One request and its upstream's cooldown: waits before the gate as long as the rule lets it wait,
// and tells the gate what the upstream answered. Owned by its exchange, on the exchange's loop;
// only the wake comes from elsewhere, and is passed on to the loop at once.

#include <chrono>
#include <optional>
#include <string_view>

#include "coordination/base/random.h"
#include "proxy/admission.h"
#include "proxy/cooldown.h"
#include "proxy/http/connection.h"
#include "proxy/stats.h"

namespace weir {

class CooldownPass {
 public:
  // Views and pointers outlive the request.
  struct Subject {
    Cooldown* cooldown = nullptr;  // nullptr: there is none, and nothing below matters
    std::string_view project;
    UpstreamStats* stats = nullptr;
    WaitingRoom* room = nullptr;
    Random* random = nullptr;
  };
  enum class Entered { passed, refused, interrupted };

  CooldownPass(http::Connection& client, Admission& admission);
  ~CooldownPass();
  CooldownPass(const CooldownPass&) = delete;
  CooldownPass& operator=(const CooldownPass&) = delete;

  void begin(const Subject& subject);

  // Whether the request may go on now; to be asked before each attempt is sent.
  bool free();
  // The last answer was no: until it is yes.
  bool held() const { return verdict_.kind != Cooldown::Verdict::Kind::go; }
  http::Task<Entered> wait();
  // For a retry that is held: false if it may not wait so long, and it has left then.
  bool stays();
  // For a hedge, which does not wait here; and when to ask again, as far as that is known.
  bool free_beside();
  std::optional<SteadyTime> not_before() const;
  // It goes no further for now: others need not wait for what it finds out.
  void step_back();
  // The client has gone, or the time for all attempts is over.
  void interrupt();

  // When an attempt is sent; and what was answered to it.
  SteadyTime sending() const;
  void answered(const http::Head& answer, SteadyTime sent);

  // Why it was turned away; fields are left to the caller.
  Ending ending() const;
  http::LocalReply denial() const;

 private:
  enum class State { outside, held, woken };

  void ask();
  void delay_over();
  static void wake(void* self);
  void woken();
  http::Task<void> stay();
  SteadyTime now() const { return client_.loop().clock().steady_now(); }

  http::Connection& client_;
  Admission& admission_;
  Subject subject_;
  Cooldown::Visitor visitor_;
  Cooldown::Verdict verdict_;
  State state_ = State::outside;
  bool counted_ = false;
  bool limit_over_ = false;
  bool room_full_ = false;
  bool interrupted_ = false;
  http::Wakeup wakeup_;
  http::Deadlines::Entry delay_, limit_;
};

}  // namespace weir
