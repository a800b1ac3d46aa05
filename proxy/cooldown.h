#pragma once

// The gate before one upstream: requests of a project wait here while its failure memory says so.
// Those that were delayed are not let go all together: the first that came goes as a probe, and the
// rest follow when the upstream has answered it well. A probe that failed holds them for the new
// delay; one that tells nothing (another status, a client that left) leaves its turn to the next,
// and so does one that takes long (a client that sends slowly, an upstream that answers so): what
// it is answered then still counts. A request that comes when the delay is over, and that nobody is
// held before, goes at once.
//
// Made by the daemon for each upstream, and shared by all workers: any thread, one short lock, and
// none while the upstream has not failed. Nothing here waits: who is held is called when it is
// worth asking again, and asks by itself at the time it was told.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/failure_memory.h"

namespace weir {

// One cooldown as the admin address tells it.
struct CooldownView {
  FailureMemory::Name name;
  CooldownRecord record;
  std::chrono::milliseconds left{0};  // of the delay
  std::size_t waiting = 0;
};

class Cooldown {
 public:
  using Name = FailureMemory::Name;
  // How long the others wait for one probe.
  static constexpr std::chrono::seconds kProbeTime{5};

  // A request before the gate. It lives until it has passed and settled; while it is held it must
  // leave(), or have been woken, before it goes.
  struct Visitor {
    std::string_view project;
    // Called once, by any thread, if it was held and is worth asking again.
    void (*wake)(void* who) = nullptr;
    void* who = nullptr;

   private:
    friend class Cooldown;
    enum class Place { none, asleep, behind_probe };
    Place place = Place::none;
    Name held_by;
    std::uint64_t arrival = 0;  // its number among those that were held; 0: it was not
    std::uint64_t probe = 0;    // its number, if it is one
  };

  // `changed` is called by any thread when take_changes() has something; empty: nobody will ask.
  Cooldown(const CooldownOptions& options, std::function<void()> changed)
      : memory_(options), changed_(std::move(changed)) {}

  // -- for requests
  struct Verdict {
    enum class Kind { go, held, draining };
    Kind kind = Kind::go;
    SteadyTime until{};         // held: when to ask again
    bool behind_probe = false;  // held: by that, and perhaps not so long
  };
  Verdict ask(Visitor& visitor, SteadyTime now);
  // Who is held asks at the time that he was told. Nothing: his wake is on the way, or has come.
  std::optional<Verdict> ask_again(Visitor& visitor, SteadyTime now);
  // For who does not wait here: the same, but it is never held.
  bool free_now(Visitor& visitor, SteadyTime now);
  // True: it is held no more and will not be woken. False: its wake is on the way, or has come.
  bool leave(Visitor& visitor);
  // It will not be answered, or not with anything that counts here.
  void settle(Visitor& visitor, SteadyTime now);
  // The upstream answered it 429 or 503.
  void failed(Visitor& visitor, const FailureMemory::Failure& failure, const Instant& now);
  void succeeded(Visitor& visitor, SteadyTime sent, const Instant& now);
  // For attempts beside another: before when they may not go. Nothing: they may.
  std::optional<SteadyTime> not_before(std::string_view project, SteadyTime now);
  // What ask() would say to one that came now, who is not held by it and probes nothing.
  Verdict foresee(std::string_view project, SteadyTime now);

  // -- for their owner
  void configure(const CooldownOptions& options);
  // Nobody is held any more.
  void drain();
  std::vector<CooldownView> view(SteadyTime now);

  // -- for sharing; see CooldownMemory
  std::map<Name, std::optional<WallTime>> take_changes();
  std::optional<CooldownMemory::Kept> find(const Name& name) const;
  void learn(const Name& name, const CooldownRecord& record, const Instant& now);
  void forget(const Name& name);

 private:
  using Places = std::map<std::uint64_t, Visitor*>;  // by arrival
  struct Line {
    Places asleep, behind_probe;
    bool empty() const { return asleep.empty() && behind_probe.empty(); }
  };
  struct Obstacle {
    Name name;
    SteadyTime until;
    Visitor::Place place;
  };
  using Woken = std::vector<Visitor*>;

  // All of these with the lock held; who is to be woken is told, and woken without it.
  Verdict judge(Visitor& visitor, SteadyTime now, Woken& woken);
  bool take_out(Visitor& visitor);
  std::optional<Obstacle> find_obstacle(Visitor& visitor,
                                        const std::vector<FailureMemory::Met>& met, SteadyTime now,
                                        Woken& woken);
  void hold(Visitor& visitor, const Obstacle& obstacle);
  void end_probe(Visitor& visitor, SteadyTime now, Woken& woken);
  static Visitor* first_of(const Line& line);
  void make_next_probe(Line& line, FailureMemory::Record& record, SteadyTime now, Woken& woken);
  void make_probe(Visitor& visitor, FailureMemory::Record& record, SteadyTime now);
  static void free(Places& places, Woken& woken);
  void free_all(const Name& name, Woken& woken);
  bool free_pushed_out(WallTime now, Woken& woken);
  void note(const Name& name, std::optional<WallTime> cleared_by);
  void update_calm() { calm_ = memory_.empty(); }
  static void wake(const Woken& woken);

  std::atomic<bool> calm_{true};  // nothing is remembered
  mutable std::mutex mutex_;      // guards all below
  FailureMemory memory_;
  std::map<Name, Line> lines_;  // those with somebody in them
  std::uint64_t last_arrival_ = 0, last_probe_ = 0;
  SteadyTime drop_useless_at_{};
  bool draining_ = false;
  std::map<Name, std::optional<WallTime>> changes_;  // to when it was cleared, if it was
  const std::function<void()> changed_;
};

}  // namespace weir
