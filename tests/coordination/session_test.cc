// A replica's presence in the store, and what others see of it.

#include "coordination/session.h"

#include <gtest/gtest.h>

#include "coordination/membership.h"
#include "tests/coordination/virtual_world.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using State = Session::State;

// One process: its way to the store, its session and whom it sees.
struct Presence {
  Presence(const Clock& clock, Store& store, const std::string& name, std::uint64_t seed)
      : way(store),
        random(seed),
        keys("/weir/v1", name),
        session(way, random, clock, keys.own_replica(),
                replica_value({name, "10.0.0.1:4040", "1.2.3", "2026-11-18T12:00:00Z"}),
                [this] { ++changes; }),
        membership(way, random, clock, keys, [this] { look(); }) {}

  void look() {
    const auto own = membership.members().find(name());
    session.saw(own == membership.members().end() ? std::nullopt
                                                  : std::optional{own->second.lease});
  }
  std::string name() const { return keys.owner(); }
  std::vector<std::string> sees() const {
    std::vector<std::string> names;
    for (const auto& [name, member] : membership.members()) names.push_back(name);
    return names;
  }

  CutStore way;
  SeededRandom random;
  Keyspace keys;
  int changes = 0;
  Session session;
  Membership membership;
};

class SessionTest : public testing::Test {
 protected:
  Presence& start(const std::string& name) {
    all_.push_back(std::make_unique<Presence>(clock_, store_, name, all_.size() + 1));
    pass(0s);
    return *all_.back();
  }
  // As kill -9 does it.
  void kill(const Presence& process) {
    std::erase_if(all_, [&](const auto& one) { return one.get() == &process; });
  }
  void pass(std::chrono::milliseconds time) {
    for (auto left = time;; left -= 100ms) {
      for (int i = 0; i < 5; ++i) {
        store_.expire();
        for (auto& one : all_) {
          one->session.run(clock_.steady_now());
          one->membership.run(clock_.steady_now());
        }
      }
      if (left <= 0ms) return;
      clock_.pass(100ms);
    }
  }

  ManualClock clock_;
  MemoryStore store_{clock_};
  std::vector<std::unique_ptr<Presence>> all_;
};

TEST_F(SessionTest, HoldsItsNameAndIsSeenByAll) {
  Presence& a = start("a");
  Presence& b = start("b");
  EXPECT_EQ(a.session.state(), State::held);
  EXPECT_EQ(b.session.state(), State::held);
  EXPECT_EQ(a.sees(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(b.sees(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(a.membership.members().at("b").facts.address, "10.0.0.1:4040");
  pass(5min);
  EXPECT_EQ(a.changes, 1) << "kept alive";
  EXPECT_EQ(store_.leases(), 2u);
}

TEST_F(SessionTest, ASecondOfTheSameNameWaitsAndTakesOverWhenTheFirstIsDead) {
  Presence& first = start("a");
  Presence& second = start("a");
  pass(1min);
  EXPECT_EQ(first.session.state(), State::held);
  EXPECT_EQ(second.session.state(), State::name_taken);
  kill(first);
  pass(8s);
  EXPECT_EQ(second.session.state(), State::name_taken);
  pass(7s);
  EXPECT_EQ(second.session.state(), State::held) << "15 s after";
}

TEST_F(SessionTest, ANameThatIsGivenUpIsFreeAtOnce) {
  Presence& first = start("a");
  Presence& second = start("a");
  bool ended = false;
  first.session.end([&] { ended = true; });
  EXPECT_TRUE(ended);
  pass(0s);
  EXPECT_EQ(second.session.state(), State::held);
  pass(1min);
  EXPECT_EQ(second.session.state(), State::held);
}

TEST_F(SessionTest, ComesBackWhenItsKeyWasDeletedByHand) {
  Presence& a = start("a");
  store_.txn({{}, {Delete{{a.keys.own_replica(), ""}}}, {}}, [](Answer<TxnAnswer>) {});
  pass(0s);
  EXPECT_EQ(a.sees(), std::vector<std::string>{"a"});
}

TEST_F(SessionTest, JoinsAnewAfterTheStoreWasAwayForLongerThanItsLease) {
  Presence& a = start("a");
  Presence& b = start("b");
  a.way.cut();
  pass(30s);
  EXPECT_EQ(b.sees(), std::vector<std::string>{"b"});
  EXPECT_EQ(a.sees(), (std::vector<std::string>{"a", "b"})) << "as last known";
  a.way.mend();
  pass(2s);
  EXPECT_EQ(a.session.state(), State::held);
  EXPECT_EQ(b.sees(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(SessionTest, WaitsForAStoreThatIsNotThereYet) {
  all_.push_back(std::make_unique<Presence>(clock_, store_, "a", 7));
  Presence& a = *all_.back();
  a.way.cut();
  pass(1min);
  EXPECT_EQ(a.session.state(), State::absent);
  EXPECT_LT(a.way.calls(), 60 * 2 * 10) << "with pauses";
  a.way.mend();
  pass(1s);
  EXPECT_EQ(a.session.state(), State::held);
}

TEST_F(SessionTest, NamesAreEncodedInKeys) {
  Presence& odd = start("a/b c%");
  EXPECT_EQ(odd.keys.own_replica(), "/weir/v1/replicas/a%2Fb%20c%25");
  EXPECT_EQ(odd.sees(), std::vector<std::string>{"a/b c%"});
}

}  // namespace
}  // namespace weir
