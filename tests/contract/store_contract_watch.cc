// Watches.

#include "tests/contract/store_contract.h"

namespace weir {

using namespace std::chrono_literals;
using Is = Compare::Is;
using Target = Compare::Target;
using Names = std::vector<std::string>;

TEST_P(StoreContract, AWatchTellsPutsAndDeletesInTheOrderOfRevisions) {
  const Revision from = put("before") + 1;
  Seen seen;
  const auto watch = store().watch(under(""), from, seen.handler());
  const Revision first = put("a", "1");
  put("b", "2");
  put("a", "3");
  const Revision last = erase("b");
  wait_for([&] { return seen.steps.size() >= 4; });
  EXPECT_EQ(seen.told(key("")), (Names{"put a=1", "put b=2", "put a=3", "deleted b"}));
  ASSERT_EQ(seen.steps.size(), 4U);
  EXPECT_EQ(seen.steps.front().revision, first);
  EXPECT_EQ(seen.steps.back().revision, last);
  EXPECT_EQ(seen.lost, 0);
}

TEST_P(StoreContract, APutIsToldWithAllThatTheKeyHas) {
  const LeaseId lease = granted(60s);
  const Revision created = put("a");
  Seen seen;
  const auto watch = store().watch(one("a"), created + 1, seen.handler());
  const Revision changed = put("a", "2", lease);
  wait_for([&] { return !seen.steps.empty(); });
  ASSERT_EQ(seen.steps.size(), 1U);
  ASSERT_EQ(seen.steps.front().events.size(), 1U);
  const KeyValue& told = seen.steps.front().events.front().key;
  EXPECT_EQ(told.key, key("a"));
  EXPECT_EQ(told.value, "2");
  EXPECT_EQ(told.create_revision, created);
  EXPECT_EQ(told.mod_revision, changed);
  EXPECT_EQ(told.version, 2);
  EXPECT_EQ(told.lease, lease);
  revoke(lease);
}

TEST_P(StoreContract, ADeleteIsToldWithTheKeyAndItsRevisionOnly) {
  const Revision created = put("a", "1");
  Seen seen;
  const auto watch = store().watch(one("a"), created + 1, seen.handler());
  const Revision deleted = erase("a");
  wait_for([&] { return !seen.steps.empty(); });
  ASSERT_EQ(seen.steps.size(), 1U);
  ASSERT_EQ(seen.steps.front().events.size(), 1U);
  const WatchEvent& told = seen.steps.front().events.front();
  EXPECT_EQ(told.kind, WatchEvent::Kind::deleted);
  EXPECT_EQ(told.key.key, key("a"));
  EXPECT_EQ(told.key.mod_revision, deleted);
  EXPECT_EQ(told.key.value, "");
  EXPECT_EQ(told.key.version, 0);
  EXPECT_EQ(told.key.create_revision, 0);
}

TEST_P(StoreContract, AllThatATransactionDidIsToldTogether) {
  put("w/b");
  put("w/c");
  const Revision from = put("w/d") + 1;
  Seen seen;
  const auto watch = store().watch(under("w/"), from, seen.handler());
  txn({{}, {put_of("w/a", "1"), put_of("x"), Delete{{key("w/b"), key("w/d")}}}, {}});
  wait_for([&] { return !seen.steps.empty(); });
  EXPECT_EQ(seen.told(key("w/")), Names{"put a=1, deleted b, deleted c"});
}

TEST_P(StoreContract, AWatchTellsOfItsRangeOnly) {
  const Revision from = put("b") + 1;
  Seen range, single;
  const auto watch_range = store().watch({key("b"), key("d")}, from, range.handler());
  const auto watch_single = store().watch(one("b"), from, single.handler());
  for (const char* name : {"a", "b", "bb", "c", "d", "b"}) put(name, "1");
  wait_for([&] { return range.steps.size() >= 4 && single.steps.size() >= 2; });
  EXPECT_EQ(range.told(key("")), (Names{"put b=1", "put bb=1", "put c=1", "put b=1"}));
  EXPECT_EQ(single.told(key("")), (Names{"put b=1", "put b=1"}));
}

TEST_P(StoreContract, AWatchFromAPastRevisionTellsWhatHappenedAndThenGoesOn) {
  put("a", "0");
  const Revision from = put("a", "1");
  erase("a");
  txn({{}, {put_of("b", "1"), put_of("c", "1")}, {}});
  Seen seen;
  const auto watch = store().watch(under(""), from, seen.handler());
  put("a", "2");
  wait_for([&] { return seen.steps.size() >= 4; });
  EXPECT_EQ(seen.told(key("")), (Names{"put a=1", "deleted a", "put b=1, put c=1", "put a=2"}));
}

TEST_P(StoreContract, AWatchFromAFutureRevisionTellsNothingBeforeIt) {
  if (!under_test().is_alone()) GTEST_SKIP() << "the future revision is not known";
  const Revision from = put("a", "0") + 2;
  Seen seen;
  const auto watch = store().watch(under(""), from, seen.handler());
  put("a", "1");
  put("a", "2");
  wait_for([&] { return !seen.steps.empty(); });
  EXPECT_EQ(seen.told(key("")), Names{"put a=2"});
}

TEST_P(StoreContract, AWatchFromNowOnTellsNothingOfThePast) {
  const Revision before = put("a", "old");
  Seen seen;
  const auto watch = store().watch(under(""), 0, seen.handler());
  // When now was is the store's to say; at last it is over.
  ASSERT_TRUE(comes_true([&] {
    put("a", "new");
    return !seen.steps.empty();
  }));
  for (const Seen::Step& step : seen.steps) EXPECT_GT(step.revision, before);
  EXPECT_EQ(seen.told(key("")).front(), "put a=new");
}

TEST_P(StoreContract, ARefusedTransactionIsNotTold) {
  const Revision from = put("a", "0") + 1;
  Seen seen;
  const auto watch = store().watch(under(""), from, seen.handler());
  refusal_of({{}, {put_of("b"), put_of("b")}, {}});
  refusal_of({{}, {put_of("b"), put_of("c", "v", fresh_lease())}, {}});
  put("a", "1");
  wait_for([&] { return !seen.steps.empty(); });
  EXPECT_EQ(seen.told(key("")), Names{"put a=1"});
}

TEST_P(StoreContract, ADestroyedWatchTellsNothingMore) {
  const Revision from = put("a", "0") + 1;
  Seen ended, going_on;
  auto watch = store().watch(under(""), from, ended.handler());
  const auto other = store().watch(under(""), from, going_on.handler());
  put("a", "1");
  wait_for([&] { return ended.steps.size() == 1 && going_on.steps.size() == 1; });
  watch.reset();
  put("a", "2");
  wait_for([&] { return going_on.steps.size() == 2; });
  EXPECT_EQ(ended.told(key("")), Names{"put a=1"});
  EXPECT_EQ(ended.lost, 0);
}

TEST_P(StoreContract, AHandlerMayDestroyItsWatch) {
  const Revision from = put("a", "0") + 1;
  Seen other;
  Names told;
  std::unique_ptr<Watch> watch;
  // What the handler owns must last until it returns.
  const auto once = [&, owned = std::string(100, 'x')](Revision, const auto&) {
    watch.reset();
    told.push_back(owned);
  };
  watch = store().watch(under(""), from, {once, [] {}});
  const auto going_on = store().watch(under(""), from, other.handler());
  put("a", "1");
  put("a", "2");
  // Each watch is told in its own time, whichever was made first.
  wait_for([&] { return !told.empty() && other.steps.size() == 2; });
  EXPECT_EQ(told, Names{std::string(100, 'x')});
}

TEST_P(StoreContract, AHandlerMayCallTheStore) {
  const Revision from = put("n", "3") + 1;
  int answers = 0;
  std::vector<std::string> values;
  Seen seen;
  // Each of these puts is told to the handler that made it.
  const auto count_down = [&](Revision, std::span<const WatchEvent> events) {
    values.push_back(events.front().key.value);
    const int next = std::stoi(values.back()) - 1;
    if (next < 0) return;
    store().txn({{}, {put_of("n", std::to_string(next))}, {}}, [&](const auto&) { ++answers; });
  };
  const auto watch = store().watch(one("n"), from, {count_down, [] {}});
  const auto second = store().watch(one("n"), from, seen.handler());
  put("n", "2");
  wait_for([&] { return answers == 2 && values.size() == 3 && seen.steps.size() == 3; });
  EXPECT_EQ(values, (Names{"2", "1", "0"}));
  EXPECT_EQ(seen.told(key("")), (Names{"put n=2", "put n=1", "put n=0"}));
}

TEST_P(StoreContract, ACallbackMayCallTheStore) {
  std::vector<bool> succeeded;
  const auto create = [&](const Callback<TxnAnswer>& callback) {
    store().txn({{{one("a"), Target::create, Is::equal, 0}}, {put_of("a")}, {Read{one("a")}}},
                callback);
  };
  const auto note = [&](const Answer<TxnAnswer>& answer) {
    succeeded.push_back(std::get<TxnAnswer>(answer).succeeded);
  };
  create([&](const Answer<TxnAnswer>& answer) {
    note(answer);
    create(note);
  });
  wait_for([&] { return succeeded.size() == 2; });
  EXPECT_EQ(succeeded, (std::vector<bool>{true, false}));
}

TEST_P(StoreContract, AWatchOfWhatIsCompactedAwayIsLost) {
  const Revision from = put("a", "0");
  put("a", "1");
  const Revision last = put("a", "2");
  if (!under_test().compact(last)) GTEST_SKIP() << "this store cannot be told to compact";
  Seen late, in_time;
  const auto lost = store().watch(under(""), from, late.handler());
  const auto going_on = store().watch(under(""), last + 1, in_time.handler());
  put("a", "3");
  wait_for([&] { return late.lost > 0 && !in_time.steps.empty(); });
  EXPECT_EQ(late.lost, 1);
  EXPECT_TRUE(late.steps.empty());
  EXPECT_EQ(in_time.told(key("")), Names{"put a=3"});
  EXPECT_EQ(in_time.lost, 0);
}

TEST_P(StoreContract, AWatchOfARangeThatEndsBeforeItBeginsIsLost) {
  Seen seen, same;
  const auto watch = store().watch({key("b"), key("a")}, 0, seen.handler());
  const auto other = store().watch({key("a"), key("a")}, 0, same.handler());
  wait_for([&] { return seen.lost > 0 && same.lost > 0; });
  EXPECT_EQ(seen.lost, 1);
  EXPECT_EQ(same.lost, 1);
}

TEST_P(StoreContract, CompactionLeavesKeysAndComparesAsTheyAre) {
  const Revision created = put("a", "1");
  put("a", "2");
  if (!under_test().compact(put("b"))) GTEST_SKIP() << "this store cannot be told to compact";
  EXPECT_EQ(at("a").create_revision, created);
  EXPECT_TRUE(holds({one("a"), Target::create, Is::equal, created}));
  EXPECT_TRUE(holds({one("a"), Target::version, Is::equal, 2}));
}

}  // namespace weir
