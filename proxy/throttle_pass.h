#pragma once

// One request and its upstream's throttle: asks for leave for each of its attempts, and waits for
// it where that is configured, as long as the rule lets it wait. Owned by its exchange, on the
// exchange's loop; only the wake comes from elsewhere, and is passed on to the loop at once.

#include <chrono>
#include <string_view>

#include "proxy/admission.h"
#include "proxy/http/connection.h"
#include "proxy/stats.h"
#include "proxy/throttle/line_bell.h"
#include "proxy/throttle/upstream_throttle.h"

namespace weir {

class ThrottlePass {
 public:
  // Views and pointers outlive the request.
  struct Subject {
    UpstreamThrottle* gate = nullptr;  // nullptr: there is none, and nothing below matters
    LineBell* bell = nullptr;          // of the loop
    std::string_view tenant;
    UpstreamStats* stats = nullptr;
    WaitingRoom* room = nullptr;
  };
  enum class Entered { passed, refused, interrupted };

  ThrottlePass(http::Connection& client, Admission& admission)
      : client_(client), admission_(admission) {}
  ~ThrottlePass() { step_back(); }
  ThrottlePass(const ThrottlePass&) = delete;
  ThrottlePass& operator=(const ThrottlePass&) = delete;

  void begin(const Subject& subject) { subject_ = subject; }

  // Whether an attempt may be sent; its leave is put into `ticket`, if there is one to settle.
  bool allows(Throttle::Ticket& ticket);
  // Behind a no to the first attempt. Passed: the next to ask is allowed.
  http::Task<Entered> wait();
  // It cannot be sent at once after all: what it waited for does not keep.
  void step_back();
  // The client has gone.
  void interrupt();

  // Why it was turned away; fields are left to the caller.
  Ending ending() const { return ending_; }
  http::LocalReply denial() const;

 private:
  struct Stay;

  bool may_wait();
  http::Task<void> in_line(Stay& stay);
  SteadyTime now() const { return client_.loop().clock().steady_now(); }

  http::Connection& client_;
  Admission& admission_;
  Subject subject_;
  Throttle::Ticket ready_;  // what it waited for
  Stay* stay_ = nullptr;    // while it waits
  SteadyTime retry_at_{};   // before then asking again is in vain
  Ending ending_ = Ending::throttled;
};

}  // namespace weir
