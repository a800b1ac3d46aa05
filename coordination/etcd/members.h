#pragma once

// The members of etcd, and which of them is used. Before a member is used it is asked for its
// version and its leader, and logged in to; while that lasts, calls wait for it, each until its own
// deadline. Where no member can be reached calls are refused at once, and nothing is kept.
//
// Owned by the store and used on the coordination loop. Functions that are handed over are called
// on it, later or before the call returns.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordination/base/clock.h"
#include "coordination/base/random.h"
#include "coordination/etcd/calls.h"
#include "coordination/etcd/endpoints.h"
#include "coordination/etcd/errors.h"
#include "coordination/etcd/wire.h"
#include "coordination/options.h"

namespace weir::etcd {

// The member that a call is sent to.
struct Use {
  Wire* wire = nullptr;
  std::size_t member = 0;
  std::uint64_t stay = 0;   // counts the members used, one after the other
  std::uint64_t login = 0;  // counts the tokens got
  std::string token{};
  SteadyTime sent{};
};

class Members {
 public:
  struct Hooks {
    std::function<void(std::string)> warn;
    std::function<void()> up;                   // a member can be used, and none could
    std::function<void(std::string why)> down;  // none can, and one could, or none ever could
    std::function<void()> left;                 // the member that was used is left
    std::function<void(std::uint64_t cluster_id)> seen;
  };
  static constexpr std::size_t kMaxWaiting = 1'024;

  Members(const EtcdOptions& options, const Clock& clock, Random& random, Calls& calls,
          Hooks hooks);

  // Calls `send` when there is a member, or `refuse` when there is none before the deadline. All
  // deadlines are equally far away.
  void ask(SteadyTime deadline, std::function<void(const Use&)> send,
           std::function<void(std::string why)> refuse);
  // How a call or a watch ended.
  void ended(const Use& use, const CallStatus& status);
  // A watch was refused for want of rights, which may be for want of a token that is known.
  void doubt_token(const Use& use);

  void run();
  std::optional<SteadyTime> next_due() const;

 private:
  enum class Phase { resting, reaching, serving };
  struct Member {
    std::string name;
    std::unique_ptr<Wire> wire;
    std::string token{};
    std::uint64_t logins = 0;
    SteadyTime logged_in = SteadyTime::min();
    std::string warned{};   // not to be said twice in a row
    std::string version{};  // that was warned of
  };
  struct Waiting {
    SteadyTime deadline;
    std::function<void(const Use&)> send;
    std::function<void(std::string)> refuse;
  };

  Member& current() { return members_[current_]; }
  void choose();
  void ask_status();
  void on_status(const CallStatus& status, const etcdserverpb::StatusResponse& response);
  bool version_will_do(const std::string& version);
  void login();
  void on_login(const CallStatus& status, etcdserverpb::AuthenticateResponse& response);
  void login_anew();
  void serve();
  void fail(const std::string& why);
  void leave(const std::string& why);
  void refuse_all(const std::string& why);
  void warn(Member& member, const std::string& what);
  Use use();

  const EtcdOptions& options_;
  const Clock& clock_;
  Random& random_;
  Calls& calls_;
  const Hooks hooks_;
  std::vector<Member> members_;
  Endpoints endpoints_;
  Phase phase_ = Phase::resting;
  std::size_t current_ = 0;
  std::uint64_t stay_ = 0;
  bool judged_ = false;     // this stay's member was found fit for use
  std::optional<bool> up_;  // as was told
  std::deque<Waiting> waiting_;
};

}  // namespace weir::etcd
