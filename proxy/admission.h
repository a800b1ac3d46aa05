#pragma once

// One request and its limit: the place in line, the unit that each attempt needs, and what the
// client is told of it. Owned by its exchange, on the exchange's loop; only the wake comes from
// elsewhere, and is passed on to the loop at once.
//
// A unit that was taken and not used goes to the next in line; one that was used is settled as its
// mode says when this ends, whichever way the request ended.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "coordination/coordinator.h"
#include "proxy/http/connection.h"
#include "proxy/limit_fields.h"
#include "proxy/stats.h"

namespace weir {

class Admission {
 public:
  // What is asked for, for whom. Views and pointers outlive the request.
  struct Subject {
    Policy* policy = nullptr;  // nullptr: unlimited, and nothing below matters
    const Limit* limit = nullptr;
    std::string_view rule, resource, tenant;
    RuleStats* rule_stats = nullptr;
    ProxyStats* stats = nullptr;
    LimitHeaders headers = LimitHeaders::off;
  };
  enum class Entered { admitted, refused, client_gone };

  Admission(Coordinator& coordinator, http::Connection& client);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  void begin(const Subject& subject);

  // Takes a unit, if need be after waiting for it as long as the rule allows. Again, if the unit's
  // time was over before it was used.
  bool admitted_at_once();
  http::Task<Entered> wait();
  // Another unit for another attempt behind one that was sent: never waits for one to come free.
  http::Task<bool> enter_again();
  // A unit of its own for an attempt beside others; never waits for one to come free. One at a
  // time.
  http::Task<bool> enter_beside(Permit& permit);
  // The client has gone: out of the line.
  void cancel();
  // A unit that was taken is not to be used after all; one that was used stays.
  void give_back() {
    if (!permit_.spent()) permit_.settle();
  }
  // Nor one that was used: another attempt asks anew.
  void settle() { permit_.settle(); }

  // How long the rule lets it wait, all in all, less what it has waited; nothing: for ever.
  std::optional<std::chrono::nanoseconds> wait_left() const;
  // It has waited for something else than a unit.
  void also_waited(std::chrono::nanoseconds time);
  // Learns what is left of the limit, for one that is turned away before it asked.
  void look();

  // Whether the attempt may be sent now; to be asked just before.
  bool may_send();
  bool may_send(const Permit& permit);  // one of enter_beside()
  // Its first byte has gone out.
  void sent();
  void sent(Permit& permit);

  // Passed only because the rule is a shadow.
  bool shadow_denied() const { return shadow_denied_; }
  // Why it was refused; fields are left to the caller.
  Ending ending() const;
  http::LocalReply denial() const;
  // For an answer's head; the text is written into `out`.
  LimitFields fields(std::string& out) const;

 private:
  enum class State { outside, in_line, answered, timed_out, client_gone };

  bool patient() const;
  void take(bool patient);
  void leave(State why);
  static void wake(void* self);
  void woken();
  Entered settle_answer();
  void learn_standing(const Allowance& allowance, const Instant& now);

  Coordinator& coordinator_;
  http::Connection& client_;
  Subject subject_;
  Instant began_{};
  std::optional<Instant> just_now_;  // what the clock said last, if nothing was waited for since

  State state_ = State::outside;
  bool client_gone_ = false;
  Waiter waiter_;
  std::shared_ptr<Allowance> allowance_;  // while there is an answer to come
  http::Wakeup wakeup_;
  http::Deadlines::Entry deadline_;

  Permit permit_;
  Permit* wanted_ = &permit_;  // what the next answer is for
  std::optional<Refusal> refusal_;
  bool passes_ = false;  // without a unit: unlimited, or a shadow
  bool shadow_denied_ = false;
  bool measured_ = false;
  std::chrono::nanoseconds waited_{0};
  Standing standing_;
  SteadyTime standing_at_{};
  Instant sending_at_{};
};

}  // namespace weir
