#pragma once

// All attempts to get one request answered: the first, those that replace a lost connection, and
// the retries or hedges that the upstream's service config asks for. The decisions are RetryState's
// and HedgeState's; this and Hedges send, wait and keep the deadlines. Every attempt beyond the
// first needs tokens, budget, a unit of the global limit and the throttle's leave, and waits for
// none of them.
//
// Owned by its exchange, on the exchange's loop. An upstream without a service config costs one
// look: no policy, no timer, nothing kept.

#include <memory>
#include <optional>
#include <vector>

#include "coordination/base/random.h"
#include "proxy/attempt/attempt.h"
#include "proxy/attempt/retry_state.h"
#include "proxy/attempt/upstream_retries.h"
#include "proxy/http/alarm.h"
#include "proxy/stats.h"

namespace weir {

// What all attempts of one exchange work with; outlives them.
struct AttemptSurroundings {
  UpstreamRetries* retries;  // nullptr: nothing is configured
  UpstreamStats& upstream_stats;
  ProxyStats& stats;
  Random& random;
};

class Hedges;

class Attempts {
 public:
  enum class Result {
    answered,   // current() has the answer's head
    unit_over,  // nothing was sent: the unit's time ended while a connection was made
    client_gone,
    body_malformed,
    body_too_slow,
    unreachable,  // every server refused
    no_socket,    // we had none to reach them with
    no_answer,
    malformed_answer,
    timed_out,
    deadline,
  };

  // `answer` is for the first attempt's head.
  Attempts(http::Connection& client, Admission& admission, CooldownPass& cooldown,
           ThrottlePass& throttle, http::Head& answer);
  ~Attempts();

  // What is sent, where to, and as which path it counts. The views outlive this.
  struct Request {
    http::Upstream* upstream;
    std::string_view wire;
    std::size_t head_size;
    std::string_view upgrade;
    std::string_view path;
  };
  void begin(const Request& request, const AttemptSurroundings& surroundings);

  // Whether the throttle lets the first one go; to be asked with a unit in hand.
  bool allowed() { return first_.allowed(); }
  // With both. Behind unit_over it may be called again.
  http::Task<Result> run();
  // The client has gone: whatever this waits for ends now.
  void cancel();
  // Before this is destroyed.
  http::Task<void> stop() { return current().stop(); }

  Attempt& current() { return *current_; }
  // Attempts sent before the one that answered.
  int previous() const { return policy_ ? policy_->sent - 1 : 0; }

  // Nothing that another attempt could mend.
  static bool is_final(Result result);

 private:
  friend class Hedges;
  // Where something is configured for the upstream.
  struct ByPolicy {
    ByPolicy(Attempts& attempts, CallPolicy call_policy);
    const CallPolicy call;
    RetryState state;
    std::optional<ReplayBody> replay;
    http::Deadlines::Entry attempt_deadline, deadline;
    bool attempt_over = false;
    bool over = false;
    std::optional<std::chrono::nanoseconds> left;  // of the whole call's time
    http::Alarm pause_alarm;
    bool paused = false;
    http::Wakeup pause_over;
    bool begun = false;
    std::vector<bool> used;  // servers that a hedged call has been sent to
    int sent = 1;            // attempts, connections replaced not counted
  };
  // An attempt beyond the first.
  struct Further {
    explicit Further(const Call& call) : attempt(call, answer) {}
    http::Head answer;
    Attempt attempt;
  };

  http::Task<Result> try_once(Attempt& attempt);
  http::Task<Result> try_and_learn();
  http::Task<Result> run_by_policy();
  http::Task<Result> run_in_time();
  http::Task<Result> try_in_time(Attempt& attempt);
  http::Task<Result> try_until_answered();
  bool afford();
  http::Task<bool> past_cooldown(Result failed);
  http::Task<bool> unit_for_retry();
  http::Task<std::unique_ptr<Further>> next_attempt(Result failed);
  bool allowed_again(Attempt& attempt);
  http::Task<void> pause(std::chrono::nanoseconds delay);
  AttemptEnd end_of(Result result, Attempt& attempt, bool timed_out) const;
  static Load load_of_end(Result result, const Attempt& attempt);
  void learn_from(Result result, Attempt& attempt);
  http::Task<Result> take_back_retry();
  void move_on(Result result, std::unique_ptr<Further> next);
  http::Task<void> drop_failed();
  void count(RetryRefusal refusal);
  SteadyTime now() const { return call_.client.loop().deadlines().now(); }
  bool ended_early() const { return call_.client.gone() || policy_->over; }

  RequestBody body_;
  Call call_;
  const AttemptSurroundings* surroundings_ = nullptr;
  Attempt first_;
  Attempt* current_ = &first_;
  TransparentRetries transparent_;
  bool counted_ = false;
  std::optional<ByPolicy> policy_;
  std::unique_ptr<Further> further_;  // the one that retries
  // What it is to mend, until it is sent: without a unit for it, that is the answer.
  struct Failed {
    Attempt* attempt = nullptr;
    std::unique_ptr<Further> further;  // nullptr: it was the first
    Result result = Result::no_answer;
  };
  Failed failed_;
  std::unique_ptr<Hedges> hedges_;
};

}  // namespace weir
