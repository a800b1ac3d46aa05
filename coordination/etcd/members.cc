#include "coordination/etcd/members.h"

#include <grpcpp/support/status_code_enum.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "coordination/etcd/channel.h"
#include "coordination/etcd/versions.h"
#include "proto/etcd_rpc.pb.h"

namespace weir::etcd {
namespace {

namespace pb = etcdserverpb;
using std::chrono::milliseconds;

// Checking a password is slow on purpose, and must not depend on how patient a transaction is.
constexpr milliseconds kLoginTimeout{3'000};
constexpr milliseconds kShortestProbe{200};
constexpr milliseconds kLongestProbe{1'000};
// A token that is refused sooner than that is not replaced by yet another at once.
constexpr milliseconds kLoginsApart{1'000};
constexpr milliseconds kDoubtsApart{5'000};

// Read for each login: it may have been changed.
std::string read_password(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

}  // namespace

Members::Members(const EtcdOptions& options, const Clock& clock, Random& random, Calls& calls,
                 Hooks hooks)
    : options_(options),
      clock_(clock),
      random_(random),
      calls_(calls),
      hooks_(std::move(hooks)),
      endpoints_(options.endpoints.size(), random.below(options.endpoints.size())) {
  for (const std::string& endpoint : options.endpoints) {
    members_.push_back({address_of(endpoint), std::make_unique<Wire>(endpoint, options, calls)});
  }
}

void Members::ask(SteadyTime deadline, std::function<void(const Use&)> send,
                  std::function<void(std::string)> refuse) {
  if (phase_ == Phase::serving && !current().wire->is_connected()) fail("lost the connection");
  if (phase_ == Phase::resting && endpoints_.choose(clock_.steady_now())) choose();
  if (phase_ == Phase::serving) return send(use());
  if (phase_ == Phase::reaching && waiting_.size() < kMaxWaiting) {
    waiting_.push_back({deadline, std::move(send), std::move(refuse)});
    return;
  }
  calls_.defer([refuse = std::move(refuse), reached = phase_ == Phase::reaching] {
    refuse(reached ? "too many calls wait for etcd" : "no member of etcd can be used");
  });
}

Use Members::use() {
  return {.wire = current().wire.get(),
          .member = current_,
          .stay = stay_,
          .login = current().logins,
          .token = current().token,
          .sent = clock_.steady_now()};
}

void Members::ended(const Use& use, const CallStatus& status) {
  const SteadyTime now = clock_.steady_now();
  if (use.stay != stay_) return;  // of a member that was left
  if (status.ok()) return endpoints_.answered(use.member, now);
  const Fault fault = fault_of(status);
  switch (fault.member) {
    case Fault::Member::fine:
      if (fault.kind != StoreError::Kind::unknown) endpoints_.answered(use.member, now);
      return;
    case Fault::Member::timed_out:
      // One that waited for the member first may have left it no time.
      if (now - use.sent < options_.timeout / 2) return;
      if (endpoints_.timed_out(use.member, use.sent, now, random_.next())) {
        leave("does not answer");
      }
      return;
    case Fault::Member::unusable:
      return fail(status.message);
    case Fault::Member::login:
      // Others that were sent with the same token have been refused too.
      if (use.login == current().logins && phase_ == Phase::serving) login_anew();
      return;
  }
}

void Members::doubt_token(const Use& use) {
  if (use.stay != stay_ || phase_ != Phase::serving || options_.username.empty()) return;
  if (clock_.steady_now() - kDoubtsApart >= current().logged_in) login_anew();
}

void Members::run() {
  const SteadyTime now = clock_.steady_now();
  while (!waiting_.empty() && waiting_.front().deadline <= now) {
    const Waiting late = std::move(waiting_.front());
    waiting_.pop_front();
    late.refuse("no member of etcd was found in time");
  }
  if (phase_ == Phase::resting && endpoints_.choose(now)) choose();
}

std::optional<SteadyTime> Members::next_due() const {
  std::optional<SteadyTime> due;
  if (!waiting_.empty()) due = waiting_.front().deadline;
  if (phase_ == Phase::resting)
    due = std::min(due.value_or(SteadyTime::max()), endpoints_.next_try());
  return due;
}

void Members::choose() {
  ++stay_;
  judged_ = false;
  if (const auto chosen = endpoints_.choose(clock_.steady_now())) {
    current_ = *chosen;
    phase_ = Phase::reaching;
    ask_status();
  } else {
    phase_ = Phase::resting;
  }
}

void Members::ask_status() {
  const auto timeout = std::clamp(options_.timeout, kShortestProbe, kLongestProbe);
  current().wire->send(
      pb::StatusRequest(), {timeout, current().token},
      [this, stay = stay_](const CallStatus& status, pb::StatusResponse& response) {
        if (stay == stay_) on_status(status, response);
      });
}

void Members::on_status(const CallStatus& status, const pb::StatusResponse& response) {
  if (!status.ok()) {
    const bool wants_login = status.code == grpc::StatusCode::PERMISSION_DENIED ||
                             fault_of(status).member == Fault::Member::login;
    if (wants_login && !options_.username.empty() &&
        clock_.steady_now() - kLoginsApart >= current().logged_in) {
      return login();
    }
    return fail(status.message);
  }
  hooks_.seen(response.header().cluster_id());
  if (!version_will_do(response.version())) return;
  if (response.leader() == 0) return fail("knows no leader");
  if (response.islearner()) return fail("is a learner");
  judged_ = true;
  if (!options_.username.empty() && current().token.empty()) return login();
  serve();
}

// If not, another member has been chosen, or none.
bool Members::version_will_do(const std::string& version) {
  using Verdict = VersionJudgement::Use;
  const VersionJudgement judgement = judge_version(version);
  if (judgement.use == Verdict::yes) return true;
  if (current().version != version) {
    current().version = version;
    hooks_.warn("etcd " + current().name + " has version " + version +
                (judgement.use == Verdict::no ? " and is not used: " : ", which ") +
                judgement.remark);
  }
  if (judgement.use == Verdict::with_a_warning) return true;
  endpoints_.refused(current_, clock_.steady_now());
  leave("has version " + version);
  return false;
}

void Members::login() {
  pb::AuthenticateRequest request;
  request.set_name(options_.username);
  request.set_password(read_password(options_.password_file));
  current().token.clear();
  current().wire->send(
      std::move(request), {kLoginTimeout, ""},
      [this, stay = stay_](const CallStatus& status, pb::AuthenticateResponse& response) {
        if (stay == stay_) on_login(status, response);
      });
}

void Members::on_login(const CallStatus& status, pb::AuthenticateResponse& response) {
  // A server that knows no users lets everybody in.
  const bool not_needed = status.code == grpc::StatusCode::FAILED_PRECONDITION;
  if (!status.ok() && !not_needed) return fail("login: " + status.message);
  Member& member = current();
  member.token = std::move(*response.mutable_token());
  member.logged_in = clock_.steady_now();
  ++member.logins;
  if (judged_) return serve();
  ask_status();
}

void Members::login_anew() {
  if (options_.username.empty()) return warn(current(), "wants a user, and none is set");
  if (clock_.steady_now() - kLoginsApart < current().logged_in) {
    current().token.clear();
    return fail("refuses the token that it gave");
  }
  phase_ = Phase::reaching;
  login();
}

void Members::serve() {
  phase_ = Phase::serving;
  current().warned.clear();
  if (up_ != true) {
    up_ = true;
    hooks_.up();
  }
  for (Waiting& waiting : std::exchange(waiting_, {})) waiting.send(use());
}

void Members::fail(const std::string& why) {
  endpoints_.failed(current_, clock_.steady_now(), random_.next());
  leave(why);
}

void Members::leave(const std::string& why) {
  const bool was_in_use = phase_ == Phase::serving || judged_;
  warn(current(), why);
  const std::string last = "etcd " + current().name + ": " + why;
  choose();
  if (was_in_use) hooks_.left();
  if (phase_ != Phase::resting) return;
  refuse_all(last);
  if (up_ != false) {
    up_ = false;
    hooks_.down(last);
  }
}

void Members::refuse_all(const std::string& why) {
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    calls_.defer([refuse = std::move(waiting.refuse), why] { refuse(why); });
  }
}

void Members::warn(Member& member, const std::string& what) {
  if (member.warned == what) return;
  member.warned = what;
  hooks_.warn("etcd " + member.name + ": " + what);
}

}  // namespace weir::etcd
