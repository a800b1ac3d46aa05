// Compares and transactions.

#include "tests/contract/store_contract.h"

namespace weir {

using namespace std::chrono_literals;
using Is = Compare::Is;
using Target = Compare::Target;
using Kind = StoreError::Kind;
using Names = std::vector<std::string>;

TEST_P(StoreContract, EveryNumberOfAKeyCanBeCompared) {
  const LeaseId lease = granted(60s);
  const Revision created = put("a");
  const Revision changed = put("a", "v", lease);
  const std::pair<Target, std::int64_t> numbers[] = {{Target::version, 2},
                                                     {Target::create, created},
                                                     {Target::mod, changed},
                                                     {Target::lease, lease}};
  for (const auto& [target, number] : numbers) {
    SCOPED_TRACE(static_cast<int>(target));
    EXPECT_TRUE(holds({one("a"), target, Is::equal, number}));
    EXPECT_FALSE(holds({one("a"), target, Is::equal, number - 1}));
    EXPECT_TRUE(holds({one("a"), target, Is::not_equal, number - 1}));
    EXPECT_FALSE(holds({one("a"), target, Is::not_equal, number}));
    EXPECT_TRUE(holds({one("a"), target, Is::less, number + 1}));
    EXPECT_FALSE(holds({one("a"), target, Is::less, number}));
    EXPECT_TRUE(holds({one("a"), target, Is::greater, number - 1}));
    EXPECT_FALSE(holds({one("a"), target, Is::greater, number}));
  }
  revoke(lease);
}

TEST_P(StoreContract, ValuesAreComparedAsBytes) {
  put("a", "k\x80");
  EXPECT_TRUE(holds({one("a"), Target::value, Is::equal, 0, "k\x80"}));
  EXPECT_FALSE(holds({one("a"), Target::value, Is::not_equal, 0, "k\x80"}));
  EXPECT_TRUE(holds({one("a"), Target::value, Is::greater, 0, "k\x7F"}));
  EXPECT_TRUE(holds({one("a"), Target::value, Is::greater, 0, "k"}));
  EXPECT_TRUE(holds({one("a"), Target::value, Is::less, 0, "k\x80\x01"}));
  EXPECT_FALSE(holds({one("a"), Target::value, Is::less, 0, "k\x7F"}));
}

TEST_P(StoreContract, ACompareOverARangeMustHoldForEveryKeyOfIt) {
  put("r/a", "1");
  const Revision second = put("r/b", "2");
  EXPECT_TRUE(holds({under("r/"), Target::version, Is::equal, 1}));
  EXPECT_TRUE(holds({under("r/"), Target::mod, Is::less, second + 1}));
  EXPECT_FALSE(holds({under("r/"), Target::mod, Is::less, second}));
  EXPECT_FALSE(holds({under("r/"), Target::mod, Is::equal, second}));
  EXPECT_FALSE(holds({under("r/"), Target::value, Is::equal, 0, "1"}));
  EXPECT_TRUE(holds({under("r/"), Target::value, Is::less, 0, "3"}));
}

TEST_P(StoreContract, AnEmptyRangeIsComparedAsAKeyWhoseNumbersAreZero) {
  for (const KeyRange& range : {one("none"), under("none/")}) {
    for (const Target target : {Target::version, Target::create, Target::mod, Target::lease}) {
      EXPECT_TRUE(holds({range, target, Is::equal, 0}));
      EXPECT_FALSE(holds({range, target, Is::not_equal, 0}));
      EXPECT_TRUE(holds({range, target, Is::less, 1}));
      EXPECT_FALSE(holds({range, target, Is::less, 0}));
      EXPECT_FALSE(holds({range, target, Is::greater, 0}));
    }
  }
}

TEST_P(StoreContract, NoCompareOfValuesHoldsOnAnEmptyRange) {
  for (const Is is : {Is::equal, Is::not_equal, Is::less, Is::greater}) {
    EXPECT_FALSE(holds({one("none"), Target::value, is, 0, ""}));
    EXPECT_FALSE(holds({under("none/"), Target::value, is, 0, "x"}));
  }
}

// The guard of a claim: nothing was put under the prefix since it was counted at revision R.
TEST_P(StoreContract, ModBelowTheNextRevisionMeansThatNothingWasPutSince) {
  const auto nothing_put_since = [this](Revision revision) {
    return holds({under("p/"), Target::mod, Is::less, revision + 1});
  };
  const Revision before = put("elsewhere");
  EXPECT_TRUE(nothing_put_since(before));
  const Revision first = put("p/a");
  EXPECT_FALSE(nothing_put_since(before));
  EXPECT_TRUE(nothing_put_since(first));
  put("p/b");
  EXPECT_FALSE(nothing_put_since(first));
  erase("p/b");
  EXPECT_TRUE(nothing_put_since(first)) << "a deleted key is not there";
}

TEST_P(StoreContract, EveryCompareOfATransactionMustHold) {
  put("a");
  const Compare true_one{one("a"), Target::version, Is::equal, 1};
  const Compare false_one{one("a"), Target::version, Is::equal, 2};
  EXPECT_TRUE(holds_all({true_one, true_one}));
  EXPECT_FALSE(holds_all({true_one, false_one}));
  EXPECT_FALSE(holds_all({false_one, true_one}));
}

// Transactions

TEST_P(StoreContract, WithoutACompareThenRuns) {
  const TxnAnswer answer = txn({{}, {put_of("then")}, {put_of("otherwise")}});
  EXPECT_TRUE(answer.succeeded);
  EXPECT_EQ(names_in(under("")), Names{"then"});
}

TEST_P(StoreContract, OtherwiseRunsAndThenDoesNotIfACompareFails) {
  const Compare there{one("a"), Target::version, Is::greater, 0};
  const TxnAnswer answer = txn({{there}, {put_of("then")}, {put_of("otherwise"), Read{one("a")}}});
  EXPECT_FALSE(answer.succeeded);
  EXPECT_EQ(answer.answers.size(), 2U);
  EXPECT_EQ(at("otherwise").mod_revision, answer.revision);
  EXPECT_EQ(names_in(under("")), Names{"otherwise"});
}

TEST_P(StoreContract, ComparesAreJudgedBeforeTheFirstOp) {
  const Compare absent{one("a"), Target::create, Is::equal, 0};
  EXPECT_TRUE(txn({{absent}, {put_of("a"), Read{one("a")}}, {}}).succeeded);
  EXPECT_FALSE(txn({{absent}, {put_of("a")}, {Read{one("a")}}}).succeeded);
  EXPECT_EQ(at("a").version, 1);
}

TEST_P(StoreContract, OpsRunInOrderAndReadsSeeWhatWasWrittenBefore) {
  put("b", "old");
  const TxnAnswer answer = txn({{},
                                {Read{under("")}, put_of("a", "new"), Read{under("")},
                                 Delete{one("b")}, Read{under(""), 0, true}},
                                {}});
  ASSERT_EQ(answer.answers.size(), 5U);
  const auto& before = std::get<ReadAnswer>(answer.answers[0]);
  ASSERT_EQ(before.keys.size(), 1U);
  EXPECT_EQ(before.keys[0].key, key("b"));
  EXPECT_TRUE(std::holds_alternative<PutAnswer>(answer.answers[1]));
  const auto& between = std::get<ReadAnswer>(answer.answers[2]);
  ASSERT_EQ(between.keys.size(), 2U);
  EXPECT_EQ(between.keys[0].value, "new");
  EXPECT_EQ(between.keys[0].mod_revision, answer.revision);
  EXPECT_EQ(between.keys[0].create_revision, answer.revision);
  EXPECT_EQ(std::get<DeleteAnswer>(answer.answers[3]).deleted, 1);
  EXPECT_EQ(std::get<ReadAnswer>(answer.answers[4]).count, 1);
}

TEST_P(StoreContract, TheAnswerCarriesTheRevisionOfTheStoreAlsoIfItOnlyRead) {
  const Revision revision = put("a");
  EXPECT_GE(txn({{}, {Read{one("a")}}, {}}).revision, revision);
}

TEST_P(StoreContract, ATransactionHoldsAtMost128OfEach) {
  Txn most, compares, then, otherwise;
  const Compare true_one{one("none"), Target::version, Is::equal, 0};
  for (std::size_t i = 0; i < kMaxOps; ++i) {
    most.compares.push_back(true_one);
    most.then.push_back(put_of(std::to_string(i)));
    most.otherwise.push_back(put_of(std::to_string(i)));
  }
  compares.compares = most.compares;
  compares.compares.push_back(true_one);
  compares.then = {put_of("a")};
  then.then = most.then;
  then.then.push_back(put_of("a"));
  otherwise.then = {put_of("a")};
  otherwise.otherwise = then.then;
  EXPECT_EQ(refusal_of(compares), Kind::not_applied);
  EXPECT_EQ(refusal_of(then), Kind::not_applied);
  EXPECT_EQ(refusal_of(otherwise), Kind::not_applied);
  EXPECT_EQ(read({under("")}).count, 0);
  EXPECT_TRUE(txn(most).succeeded);
  EXPECT_EQ(read({under("")}).count, 128);
}

TEST_P(StoreContract, AKeyPutTwiceIsRefused) {
  EXPECT_EQ(refusal_of({{}, {put_of("a", "1"), put_of("b"), put_of("a", "2")}, {}}),
            Kind::not_applied);
  EXPECT_EQ(refusal_of({{}, {put_of("b")}, {put_of("a"), put_of("a")}}), Kind::not_applied)
      << "in the branch that would not run";
  EXPECT_EQ(read({under("")}).count, 0);
}

TEST_P(StoreContract, AKeyBothPutAndDeletedIsRefused) {
  put("a");
  EXPECT_EQ(refusal_of({{}, {put_of("a", "2"), Delete{one("a")}}, {}}), Kind::not_applied);
  EXPECT_EQ(refusal_of({{}, {Delete{one("a")}, put_of("a", "2")}, {}}), Kind::not_applied);
  EXPECT_EQ(refusal_of({{}, {Delete{under("")}, put_of("new")}, {}}), Kind::not_applied);
  EXPECT_EQ(refusal_of({{}, {Read{one("a")}}, {put_of("b"), Delete{under("")}}}),
            Kind::not_applied);
  EXPECT_EQ(at("a").version, 1);
  EXPECT_TRUE(txn({{}, {put_of("b"), Delete{{key("a"), key("b")}}}, {}}).succeeded)
      << "the end of a range is not in it";
}

TEST_P(StoreContract, AKeyPutAndDeletedWithAllAfterItGoesTheWayOfTheOrder) {
  if (!under_test().is_alone()) GTEST_SKIP() << "others have keys after it";
  const std::string last(1, '\0');
  const Revision from = put("a", "1") + 1;
  Seen seen;
  const auto watch = store().watch(under(""), from, seen.handler());
  EXPECT_TRUE(txn({{}, {put_of("a", "2"), Delete{{key("a"), last}}}, {}}).succeeded);
  EXPECT_FALSE(get("a"));
  EXPECT_TRUE(txn({{}, {Delete{{key("a"), last}}, put_of("a", "3")}, {}}).succeeded);
  EXPECT_EQ(at("a").version, 1);
  wait_for([&] { return seen.steps.size() >= 2; });
  EXPECT_EQ(seen.told(key("")), (Names{"put a=2, deleted a", "put a=3"}));
}

TEST_P(StoreContract, TheSameKeyMayBePutInBothBranches) {
  EXPECT_TRUE(txn({{}, {put_of("a", "then")}, {put_of("a", "otherwise")}}).succeeded);
  EXPECT_EQ(at("a").value, "then");
}

TEST_P(StoreContract, AnEmptyKeyIsRefused) {
  EXPECT_EQ(refusal_of({{}, {put_of("a"), Put{"", "v"}}, {}}), Kind::not_applied);
  EXPECT_EQ(refusal_of({{}, {Read{{"", ""}}}, {}}), Kind::not_applied);
  EXPECT_EQ(refusal_of({{}, {put_of("a")}, {Delete{{"", key("z")}}}}), Kind::not_applied);
  EXPECT_EQ(refusal_of({{{{"", ""}, Target::mod, Is::equal}}, {put_of("a")}, {}}),
            Kind::not_applied);
  EXPECT_FALSE(get("a"));
}

}  // namespace weir
