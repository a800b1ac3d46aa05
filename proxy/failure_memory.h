#pragma once

// What one upstream's 429s and 503s mean for the requests that follow. For each project, or for all
// of them, and each of the two statuses there is a record, which grows with each failure:
//
//   failures += 1,  range = min(max, base * 2^(failures - 1)),  delay = U[0, range),
//   not_before = now + max(delay, Retry-After), and never earlier than it was before.
//
// One draw for each failure, so that nobody can draw again by asking again; the mean of the first
// delay is base / 2. Requests that were under way when a failure came in, and fail too, say nothing
// new: they are the same failure, but for a longer Retry-After. A 2xx to a request that was sent
// after the last failure deletes the project's records and those for all projects.
//
// Delays run on the steady clock; wall times are for sharing. A record that comes from elsewhere,
// or from before a restart, delays nobody longer than it did where it was made, whatever the clocks
// say. A record is of use, for its count, for `max` beyond its delay, and at least a minute. There
// are at most so many projects; of too many, those whose delay ends first go. Pure; not
// thread-safe: a Cooldown guards its own.

#include <array>
#include <chrono>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordination/base/clock.h"
#include "coordination/cooldown_record.h"
#include "proxy/upstream_options.h"

namespace weir {

// The range that a delay is drawn from behind so many failures. No number of them overflows.
std::chrono::nanoseconds cooldown_range(const CooldownOptions::Class& options, int failures);

class FailureMemory {
 public:
  static constexpr std::size_t kMostProjects = 10'000;
  static constexpr std::chrono::minutes kLeastUse{1};

  struct Name {
    std::string project;  // empty: all of them
    int status = 0;       // 429 or 503
    auto operator<=>(const Name&) const = default;
  };
  struct Failure {
    int status;
    std::string_view project;
    SteadyTime sent;
    std::chrono::nanoseconds retry_after{0};
    double random = 0;  // in [0, 1)
  };
  struct Record {
    CooldownRecord shared;
    SteadyTime failed{};       // the last time
    SteadyTime until{};        // no request before
    SteadyTime useful_to{};    // forgotten then
    std::uint64_t probe = 0;   // the request that tries whether the upstream is well; 0: none
    SteadyTime probe_until{};  // no longer than that
    bool probed(SteadyTime now) const { return probe != 0 && now < probe_until; }
    bool useless(SteadyTime now) const { return useful_to <= now && !probed(now); }
  };

  explicit FailureMemory(const CooldownOptions& options, std::size_t most = kMostProjects)
      : options_(options), most_(most) {}

  // Hold from the next failure on.
  void configure(const CooldownOptions& options) { options_ = options; }

  static bool counts(int status) { return status == 429 || status == 503; }
  // Says whose record it was.
  Name failed(const Failure& failure, const Instant& now);
  // Says which records that was the end of.
  std::vector<Name> succeeded(std::string_view project, SteadyTime sent);

  // The records that a request of the project meets: its own first, 503 before 429.
  struct Met {
    Name name;
    Record* record;
  };
  std::vector<Met> met_by(std::string_view project, SteadyTime now);
  // Before when a request of the project is not sent: the latest of all those. Nothing: it may go.
  std::optional<SteadyTime> not_before(std::string_view project, SteadyTime now);

  // For sharing.
  const Record* find(const Name& name) const;
  void learn(const Name& name, const CooldownRecord& record, const Instant& now);
  void forget(const Name& name);
  std::chrono::milliseconds beyond(int status) const {
    return std::max<std::chrono::milliseconds>(of(status).max, kLeastUse);
  }

  // Whatever is of no use any more.
  void drop_useless(SteadyTime now);
  bool empty() const { return projects_.empty() && !global_[0] && !global_[1]; }
  std::vector<Met> all();
  // Those that had to make room since the last look.
  std::vector<Name> take_pushed_out() { return std::exchange(pushed_out_, {}); }

 private:
  using Records = std::array<std::optional<Record>, 2>;  // 503, 429

  static std::size_t place(int status) { return status == 503 ? 0 : 1; }
  const CooldownOptions::Class& of(int status) const {
    return status == 503 ? options_.on_503 : options_.on_429;
  }
  Record& get(const Name& name, SteadyTime now);
  void make_room(SteadyTime now);

  CooldownOptions options_;
  const std::size_t most_;
  Records global_;
  std::map<std::string, Records, std::less<>> projects_;
  std::vector<Name> pushed_out_;
};

}  // namespace weir
