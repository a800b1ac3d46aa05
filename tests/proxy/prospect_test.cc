// What would become of a request now: the decisions, by facts alone.

#include "proxy/prospect.h"

#include <gtest/gtest.h>

#include "coordination/window.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using http::Denial;
using What = Prospect::What;

const WallTime kWindow = *parse_utc("2026-11-18T05:04:00Z");
const Instant kNow{SteadyTime{100s}, kWindow + 40s};

// Ten a minute, all of them used; nobody waits.
ProspectFacts used_up() {
  ProspectFacts facts;
  facts.units.limit.units = facts.units.units = 10;
  facts.units.known = true;
  facts.units.claimed = 10;
  Allowance::State& state = facts.units.summary.state;
  state.window = {kWindow, 60s};
  state.limit = state.used = 10;
  state.full = true;
  state.more_at = kWindow + 60s;
  return facts;
}

ProspectFacts untouched() {
  ProspectFacts facts;
  facts.units.limit.units = facts.units.units = 10;
  facts.units.claimed = 0;
  return facts;
}

Prospect ask(const ProspectFacts& facts) { return foresee(facts, kNow); }

TEST(Prospect, AUnitInHandIsSpentAtOnce) {
  ProspectFacts facts = used_up();
  facts.units.summary.in_hand = 1;
  EXPECT_EQ(ask(facts).what, What::go);
}

TEST(Prospect, ButNotAheadOfThoseInLine) {
  ProspectFacts facts = used_up();
  facts.units.summary.in_hand = 1;
  facts.units.summary.waiting = 1;
  EXPECT_EQ(ask(facts).what, What::wait);
}

TEST(Prospect, WhereUnitsAreLeftOneIsClaimed) { EXPECT_EQ(ask(untouched()).what, What::claim); }

TEST(Prospect, NothingIsClaimedWhereNobodyElseCounts) {
  ProspectFacts facts = untouched();
  facts.units.counted_here = true;
  EXPECT_EQ(ask(facts).what, What::go);
  facts.units.claimed = 10;
  EXPECT_EQ(ask(facts).what, What::wait) << "all are used";
}

TEST(Prospect, WhatOtherReplicasClaimedCountsThoughNobodyHereAskedYet) {
  ProspectFacts facts = untouched();
  facts.units.claimed = 10;
  const Prospect prospect = ask(facts);
  EXPECT_EQ(prospect.what, What::wait);
  EXPECT_EQ(prospect.reason, Denial::limit);
  EXPECT_EQ(prospect.not_before, kWindow + 60s);
}

TEST(Prospect, AUsedUpLimitIsWaitedForUntilTheWindowEnds) {
  const Prospect prospect = ask(used_up());
  EXPECT_EQ(prospect.what, What::wait);
  EXPECT_EQ(prospect.not_before, kWindow + 60s);
}

TEST(Prospect, WhoIsAheadTakesTheWindowsBetween) {
  ProspectFacts facts = used_up();
  facts.units.summary.waiting = 9;
  EXPECT_EQ(ask(facts).not_before, kWindow + 60s);
  facts.units.summary.waiting = 10;
  EXPECT_EQ(ask(facts).not_before, kWindow + 120s);
  facts.units.summary.waiting = 25;
  EXPECT_EQ(ask(facts).not_before, kWindow + 180s);
  EXPECT_EQ(ask(facts).ahead, 25u);
}

TEST(Prospect, AWindowThatIsOverIsForgotten) {
  ProspectFacts facts = used_up();
  facts.units.claimed = 0;
  const Prospect prospect = foresee(facts, {kNow.steady + 20s, kWindow + 60s});
  EXPECT_EQ(prospect.what, What::claim);
}

TEST(Prospect, WaitOfNothingIs429AtOnce) {
  ProspectFacts facts = used_up();
  facts.units.limit.wait = 0ms;
  const Prospect prospect = ask(facts);
  EXPECT_EQ(prospect.what, What::refuse);
  EXPECT_EQ(prospect.reason, Denial::limit);
  EXPECT_EQ(prospect.patience, 0ms);
}

TEST(Prospect, AWaitThatIsTooShortEndsIn429) {
  ProspectFacts facts = used_up();
  facts.units.limit.wait = 20s;
  EXPECT_EQ(ask(facts).what, What::wait);
  facts.units.limit.wait = 19s;
  EXPECT_EQ(ask(facts).what, What::refuse);
  EXPECT_EQ(ask(facts).patience, 19s);
}

TEST(Prospect, WhereAsManyWaitAsMayTheNextIsTurnedAway) {
  ProspectFacts facts = used_up();
  facts.room_full = true;
  EXPECT_EQ(ask(facts).reason, Denial::queue_full);
}

TEST(Prospect, AUnitOfAnEndingRequestHasNoTime) {
  for (const Mode mode : {Mode::in_flight, Mode::until_done}) {
    ProspectFacts facts = used_up();
    facts.units.limit.mode = facts.units.summary.state.mode = mode;
    facts.units.limit.wait = 1ms;
    const Prospect prospect = ask(facts);
    EXPECT_EQ(prospect.what, What::wait);
    EXPECT_EQ(prospect.not_before, std::nullopt);
  }
}

TEST(Prospect, WithoutTheStoreNobodyWhoNeedsAUnitPasses) {
  ProspectFacts facts = untouched();
  facts.units.claimed.reset();
  EXPECT_EQ(ask(facts).reason, Denial::store_unavailable);
  facts.units.store_needed = false;
  EXPECT_EQ(ask(facts).what, What::claim);
  facts = used_up();
  facts.units.summary.state.store_down = true;
  EXPECT_EQ(ask(facts).reason, Denial::store_unavailable);
}

TEST(Prospect, ShadowsAndUnlimitedRulesHoldNobodyBack) {
  ProspectFacts facts = used_up();
  facts.units.limit.shadow = true;
  EXPECT_EQ(ask(facts).what, What::go);
  facts.units.limit.shadow = false;
  facts.units.limit.unlimited = true;
  EXPECT_EQ(ask(facts).what, What::go);
}

TEST(Prospect, ACooldownIsWaitedForEvenByThem) {
  ProspectFacts facts = used_up();
  facts.units.limit.unlimited = true;
  facts.cooldown = {Cooldown::Verdict::Kind::held, kNow.steady + 30s};
  const Prospect prospect = ask(facts);
  EXPECT_EQ(prospect.what, What::wait);
  EXPECT_EQ(prospect.reason, Denial::cooldown);
  EXPECT_EQ(prospect.not_before, kNow.wall + 30s);
}

TEST(Prospect, OfACooldownAndALimitTheLaterOneHolds) {
  ProspectFacts facts = used_up();
  facts.cooldown = {Cooldown::Verdict::Kind::held, kNow.steady + 10s};
  EXPECT_EQ(ask(facts).reason, Denial::limit);
  EXPECT_EQ(ask(facts).not_before, kWindow + 60s);
  facts.cooldown.until = kNow.steady + 30s;
  EXPECT_EQ(ask(facts).reason, Denial::cooldown);
  facts.units.limit.wait = 25s;
  EXPECT_EQ(ask(facts).what, What::refuse);
  EXPECT_EQ(ask(facts).reason, Denial::cooldown);
}

TEST(Prospect, BehindAProbeNobodyCanTellWhen) {
  ProspectFacts facts = untouched();
  facts.cooldown = {Cooldown::Verdict::Kind::held, kNow.steady + 5s, true};
  EXPECT_EQ(ask(facts).what, What::wait);
  EXPECT_EQ(ask(facts).not_before, std::nullopt);
}

TEST(Prospect, NobodyOvertakesThoseWhoWaitForTheThrottle) {
  ProspectFacts facts = untouched();
  facts.before_throttle = 4;
  EXPECT_EQ(ask(facts).what, What::wait);
  EXPECT_EQ(ask(facts).reason, Denial::throttled);
  EXPECT_EQ(in_words(ask(facts)), "waits for leave of its upstream's throttle, behind 4 others");
  facts.units.limit.wait = 0ms;
  EXPECT_EQ(ask(facts).what, What::refuse);
  facts.units.limit.wait.reset();
  facts.room_full = true;
  EXPECT_EQ(ask(facts).reason, Denial::queue_full);
  facts = used_up();
  facts.before_throttle = 4;
  EXPECT_EQ(ask(facts).reason, Denial::limit) << "which it meets first";
}

TEST(Prospect, AReplicaThatDrainsTurnsAwayWhoWouldWait) {
  ProspectFacts facts = used_up();
  facts.draining = true;
  EXPECT_EQ(ask(facts).reason, Denial::draining);
  facts = untouched();
  facts.draining = true;
  EXPECT_EQ(ask(facts).what, What::claim) << "which is no waiting";
  facts.units.claimed.reset();
  EXPECT_EQ(ask(facts).reason, Denial::draining);
}

TEST(Prospect, AskingHoldsNobodyAndProbesNothing) {
  Cooldown gate({.enabled = true}, nullptr);
  EXPECT_EQ(gate.foresee("a", kNow.steady).kind, Cooldown::Verdict::Kind::go);
  Cooldown::Visitor failed;
  failed.project = "a";
  gate.failed(failed, {429, "a", kNow.steady, 10s, 0.5}, kNow);
  const auto held = gate.foresee("a", kNow.steady);
  EXPECT_EQ(held.kind, Cooldown::Verdict::Kind::held);
  EXPECT_EQ(gate.foresee("b", kNow.steady).kind, Cooldown::Verdict::Kind::go);
  EXPECT_EQ(gate.view(kNow.steady).at(0).waiting, 0u);
  const SteadyTime after = held.until + 1s;
  EXPECT_EQ(gate.foresee("a", after).kind, Cooldown::Verdict::Kind::go);
  // One who has waited goes as a probe; who comes meanwhile waits for it.
  Cooldown::Visitor waiter;
  waiter.project = "a";
  waiter.wake = [](void*) {};
  EXPECT_EQ(gate.ask(waiter, kNow.steady).kind, Cooldown::Verdict::Kind::held);
  EXPECT_TRUE(gate.foresee("a", after).behind_probe);
  ASSERT_TRUE(gate.ask_again(waiter, after).has_value());
  EXPECT_EQ(gate.foresee("a", after).kind, Cooldown::Verdict::Kind::held);
  EXPECT_TRUE(gate.foresee("a", after).behind_probe);
  gate.settle(waiter, after);
  EXPECT_EQ(gate.foresee("a", after).kind, Cooldown::Verdict::Kind::go);
}

TEST(Prospect, IsSaidInWords) {
  ProspectFacts facts = used_up();
  facts.units.summary.waiting = 3;
  EXPECT_EQ(in_words(ask(facts)),
            "waits for a unit, until 2026-11-18T05:05:00.000Z at the earliest, behind 3 others");
  facts.units.limit.wait = 5s;
  EXPECT_EQ(in_words(ask(facts)), "is turned away: limit, behind 5000 ms of waiting");
}

}  // namespace
}  // namespace weir
