// Cooldowns over replicas and restarts, on one memory store in virtual time: what one replica saw
// delays the others, what one succeeded in frees them, and nobody needs the store to be there.

#include "daemon/cooldowns.h"

#include <gtest/gtest.h>

#include "coordination/cooldown_share.h"
#include "tests/coordination/virtual_world.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

UpstreamOptions upstream_options() {
  UpstreamOptions options;
  options.name = "main";
  options.cooldown.enabled = true;
  return options;
}

// One process: its way to the store, its cooldowns, and how it shares them.
struct Sharer {
  Sharer(const Clock& the_clock, Store& store, const std::string& name, std::uint64_t seed)
      : clock(the_clock),
        way(store),
        random(seed),
        keys("/weir/v1", name),
        cooldowns(clock, [] {}),
        gate(cooldowns.configure(upstream_options())),
        share(way, random, clock, keys, cooldowns) {}

  void fail(const std::string& project, std::chrono::seconds retry_after, int status = 429) {
    Cooldown::Visitor visitor;
    visitor.project = project;
    gate->failed(visitor, {status, project, clock.steady_now(), retry_after, 0}, clock.now());
  }
  void succeed(const std::string& project, SteadyTime sent) {
    Cooldown::Visitor visitor;
    visitor.project = project;
    gate->succeeded(visitor, sent, clock.now());
  }
  void succeed(const std::string& project) { succeed(project, clock.steady_now()); }
  milliseconds delay(const std::string& project) const {
    const auto until = gate->not_before(project, clock.steady_now());
    return until ? std::chrono::duration_cast<milliseconds>(*until - clock.steady_now()) : 0ms;
  }
  int failures(const std::string& project, int status = 429) const {
    const auto found = gate->find({project, status});
    return found ? found->record.failures : 0;
  }

  const Clock& clock;
  CutStore way;
  SeededRandom random;
  Keyspace keys;
  Cooldowns cooldowns;
  std::shared_ptr<Cooldown> gate;
  CooldownShare share;
};

class SharedCooldowns : public testing::Test {
 protected:
  SharedCooldowns() { clock_.set_wall(*parse_utc("2026-11-18T12:00:00Z")); }

  Sharer& start(const std::string& name) {
    all_.push_back(std::make_unique<Sharer>(clock_, store_, name, all_.size() + 1));
    pass(0s);
    return *all_.back();
  }
  void kill(const Sharer& process) {
    std::erase_if(all_, [&](const auto& one) { return one.get() == &process; });
  }
  void pass(milliseconds time) {
    for (auto left = time;; left -= 100ms) {
      for (int i = 0; i < 6; ++i) {
        store_.expire();
        for (auto& one : all_) one->share.run(clock_.steady_now());
      }
      if (left <= 0ms) return;
      clock_.pass(100ms);
    }
  }
  std::map<std::string, std::string> stored() {
    std::map<std::string, std::string> found;
    store_.txn({{}, {Read{keys_under("/")}}, {}}, [&](Answer<TxnAnswer> answer) {
      for (const KeyValue& entry :
           std::get<ReadAnswer>(std::get<TxnAnswer>(answer).answers[0]).keys) {
        found[entry.key] = entry.value;
      }
    });
    return found;
  }
  using Stored = std::map<std::string, std::string>;

  ManualClock clock_;
  MemoryStore store_{clock_};
  std::vector<std::unique_ptr<Sharer>> all_;
};

TEST_F(SharedCooldowns, AFailureSeenByOneDelaysAll) {
  Sharer& a = start("a");
  Sharer& b = start("b");
  a.fail("p", 60s);
  a.fail("q", 90s, 503);
  pass(0s);
  EXPECT_EQ(b.delay("p"), 90s) << "the 503 is for all";
  pass(1s);
  EXPECT_EQ(stored(), (Stored{{"/weir/v1/cooldowns/main/p/429",
                               R"({"failures":1,"last":"2026-11-18T12:00:00.000Z",)"
                               R"("not_before":"2026-11-18T12:01:00.000Z"})"},
                              {"/weir/v1/cooldowns/main/*/503",
                               R"({"failures":1,"last":"2026-11-18T12:00:00.000Z",)"
                               R"("not_before":"2026-11-18T12:01:30.000Z"})"}}));
  EXPECT_EQ(b.delay("r"), 89s);
}

TEST_F(SharedCooldowns, ASuccessOfOneFreesAll) {
  Sharer& a = start("a");
  Sharer& b = start("b");
  a.fail("p", 60s);
  pass(1s);
  b.succeed("p");
  EXPECT_EQ(b.delay("p"), 0s);
  EXPECT_GT(a.delay("p"), 0s);
  pass(0s);
  EXPECT_EQ(a.delay("p"), 0s);
  EXPECT_EQ(stored(), Stored{});
}

TEST_F(SharedCooldowns, ASuccessThatWasSentBeforeAnothersFailureFreesNobody) {
  Sharer& a = start("a");
  Sharer& b = start("b");
  b.fail("p", 10s);
  pass(1s);
  const SteadyTime sent = clock_.steady_now();
  pass(1s);
  b.way.cut();
  pass(0s);
  a.fail("p", 60s);
  pass(100ms);
  b.succeed("p", sent);  // b does not know yet
  EXPECT_EQ(b.delay("p"), 0s);
  b.way.mend();
  pass(1s);
  EXPECT_GT(a.delay("p"), 58s);
  EXPECT_GT(b.delay("p"), 58s) << "and learns";
  EXPECT_EQ(stored().size(), 1u);
}

TEST_F(SharedCooldowns, ARestartKeepsTheDelayAndTheCount) {  // J-7
  Sharer* a = &start("a");
  a->fail("p", 60s);
  pass(1s);
  a->fail("p", 120s);
  pass(1s);
  kill(*a);
  pass(30s);
  a = &start("a");
  EXPECT_EQ(a->delay("p"), 89s);
  pass(90s);
  a->fail("p", 0s);
  EXPECT_EQ(a->failures("p"), 3);
}

TEST_F(SharedCooldowns, TheLaterHoldsOfWhatTwoSawAtOnceAndItCountsOnce) {
  Sharer& a = start("a");
  Sharer& b = start("b");
  a.fail("p", 60s);
  b.fail("p", 100s);
  pass(0s);
  EXPECT_EQ(a.delay("p"), 100s);
  EXPECT_EQ(b.delay("p"), 100s);
  EXPECT_EQ(a.failures("p"), 1);
  EXPECT_EQ(b.failures("p"), 1);
  pass(1s);
  b.fail("p", 0s);
  pass(0s);
  EXPECT_EQ(a.failures("p"), 2);
  EXPECT_EQ(a.delay("p"), 99s);
}

TEST_F(SharedCooldowns, WithoutTheStoreEachGoesOnForItselfAndTheyMeetAgainAfterwards) {
  Sharer& a = start("a");
  Sharer& b = start("b");
  a.way.cut();
  b.way.cut();
  a.fail("p", 100s);
  b.fail("p", 50s);
  b.fail("q", 70s);
  pass(10s);
  EXPECT_EQ(a.delay("p"), 90s);
  EXPECT_EQ(b.delay("p"), 40s);
  EXPECT_EQ(a.delay("q"), 0s);
  EXPECT_LT(a.way.calls(), 200) << "with pauses";
  a.way.mend();
  b.way.mend();
  pass(2s);
  for (const Sharer* one : {&a, &b}) {
    EXPECT_EQ(one->delay("p"), 88s) << one->keys.owner();
    EXPECT_EQ(one->delay("q"), 58s) << one->keys.owner();
  }
}

TEST_F(SharedCooldowns, ASuccessWhileTheWatchWasLostIsLearnedByReading) {
  Sharer& a = start("a");
  Sharer& b = start("b");
  a.fail("p", 100s);
  pass(1s);
  b.way.cut();
  pass(0s);
  a.succeed("p");
  pass(1s);
  EXPECT_GT(b.delay("p"), 0s);
  b.way.mend();
  pass(1s);
  EXPECT_EQ(b.delay("p"), 0s);
}

TEST_F(SharedCooldowns, AReadThatIsAnsweredLateIsNotTakenForWhatIsThereNow) {
  Sharer& a = start("a");
  Sharer& b = start("b");
  a.way.hold();
  b.fail("p", 60s);
  pass(0s);
  a.fail("p", 10s);
  pass(0s);  // refused, since there is b's; and read that
  clock_.pass(10ms);
  b.succeed("p");
  pass(0s);
  ASSERT_EQ(stored(), Stored{});
  a.way.let_go_events();
  a.way.let_go_answers();
  pass(0s);
  a.way.let_go_answers();
  pass(1s);
  a.way.let_go_answers();
  EXPECT_EQ(stored().size(), 1u) << "what a saw is still to be told";
  EXPECT_GT(b.delay("p"), 0s);
}

TEST_F(SharedCooldowns, RecordsOutliveTheirDelayAndThenGoByThemselves) {
  Sharer& a = start("a");
  a.fail("p", 60s);
  pass(1s);
  kill(a);
  pass(60s + 9min);
  EXPECT_EQ(stored().size(), 1u) << "for the count";
  pass(5min);
  EXPECT_EQ(stored(), Stored{});
  EXPECT_EQ(store_.leases(), 0u);
}

TEST_F(SharedCooldowns, ManyRecordsHangOnFewLeases) {
  Sharer& a = start("a");
  for (int i = 0; i < 300; ++i) a.fail("p" + std::to_string(i), std::chrono::seconds{60 + i % 30});
  pass(2s);
  EXPECT_EQ(stored().size(), 300u);
  EXPECT_LE(store_.leases(), 2u);
}

TEST_F(SharedCooldowns, NoMoreRecordsAreInTheStoreThanAnybodyRemembers) {
  Sharer& a = start("a");
  Sharer& b = start("b");
  constexpr auto kMost = FailureMemory::kMostProjects;
  for (std::size_t i = 0; i < kMost; ++i) a.fail("p" + std::to_string(i), 300s);
  pass(1s);
  EXPECT_EQ(stored().size(), kMost);
  a.fail("short", 1s);
  a.fail("long", 600s);
  pass(1s);
  EXPECT_LE(stored().size(), kMost);
  EXPECT_TRUE(stored().contains("/weir/v1/cooldowns/main/long/429"));
  EXPECT_LE(a.gate->view(clock_.steady_now()).size(), kMost);
  EXPECT_EQ(b.gate->view(clock_.steady_now()).size(), stored().size());
}

TEST_F(SharedCooldowns, ALeaseThatIsLostIsReplaced) {
  Sharer& a = start("a");
  a.fail("p", 60s);
  pass(1s);
  for (const Txn& txn : a.way.sent()) {
    for (const Op& op : txn.then) {
      if (const auto* put = std::get_if<Put>(&op)) {
        store_.revoke(put->lease, [](Answer<LeaseTerm>) {});
      }
    }
  }
  pass(1s);
  EXPECT_EQ(stored(), Stored{});
  a.fail("p", 60s);
  pass(2s);
  EXPECT_EQ(stored().size(), 1u);
}

TEST_F(SharedCooldowns, WhatNobodyCanReadIsLeftAlone) {
  Sharer& a = start("a");
  const std::string prefix = "/weir/v1/cooldowns/main/";
  for (const auto& [key, value] :
       Stored{{prefix + "p/429", "nonsense"},
              {prefix + "q/429", R"({"failures":0,"last":"x","not_before":"y"})"},
              {prefix + "r/500", cooldown_value({1, clock_.wall_now(), clock_.wall_now() + 1h})},
              {prefix + "429", cooldown_value({1, clock_.wall_now(), clock_.wall_now() + 1h})}}) {
    store_.txn({{}, {Put{key, value, 0}}, {}}, [](Answer<TxnAnswer>) {});
  }
  pass(1s);
  for (const char* project : {"p", "q", "r", "429"}) EXPECT_EQ(a.delay(project), 0s);
  EXPECT_EQ(stored().size(), 4u);
  a.fail("p", 60s);
  pass(1s);
  EXPECT_EQ(a.delay("p"), 59s);
}

TEST_F(SharedCooldowns, OddProjectsSurviveTheWayIntoAKeyAndBack) {
  Sharer& a = start("a");
  Sharer& b = start("b");
  for (const std::string project : {"*", "-", "a/b", "/", "%", "%2A", "a b", "\xff\x01", "429"}) {
    a.fail(project, 60s);
    pass(0s);
    EXPECT_EQ(b.delay(project), 60s) << project;
    EXPECT_EQ(b.delay("other"), 0s) << project;
  }
  EXPECT_EQ(stored().size(), 9u);
  EXPECT_TRUE(stored().contains("/weir/v1/cooldowns/main/%2A/429"));
  EXPECT_TRUE(stored().contains("/weir/v1/cooldowns/main/a/b/429"));
}

TEST_F(SharedCooldowns, AReplacedStoreGetsWhatIsStillOfUse) {
  Sharer& a = start("a");
  a.fail("p", 600s);
  pass(1s);
  MemoryStore fresh(clock_);
  a.way.cut();
  a.way.mend();
  a.way.lead_to(fresh);
  a.share.start_over();
  pass(2s);
  EXPECT_EQ(a.delay("p"), 597s);
  int count = 0;
  fresh.txn({{}, {Read{keys_under("/")}}, {}}, [&](Answer<TxnAnswer> answer) {
    count =
        static_cast<int>(std::get<ReadAnswer>(std::get<TxnAnswer>(answer).answers[0]).keys.size());
  });
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace weir
