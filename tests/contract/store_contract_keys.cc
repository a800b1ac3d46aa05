// Keys, revisions and ranges.

#include "tests/contract/store_contract.h"

namespace weir {

using Is = Compare::Is;
using Target = Compare::Target;
using Names = std::vector<std::string>;

TEST_P(StoreContract, AKeyThatWasNeverPutIsNotThere) {
  EXPECT_FALSE(get("a"));
  EXPECT_EQ(read({one("a")}).count, 0);
}

TEST_P(StoreContract, ANewKeyCarriesTheRevisionOfItsTransactionAndVersionOne) {
  const Revision revision = put("a", "1");
  const auto found = get("a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key, key("a"));
  EXPECT_EQ(found->value, "1");
  EXPECT_EQ(found->create_revision, revision);
  EXPECT_EQ(found->mod_revision, revision);
  EXPECT_EQ(found->version, 1);
  EXPECT_EQ(found->lease, 0);
}

TEST_P(StoreContract, PuttingAKeyAgainKeepsItsCreateRevision) {
  const Revision first = put("a", "1");
  const Revision second = put("a", "2");
  EXPECT_GT(second, first);
  const auto found = get("a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, "2");
  EXPECT_EQ(found->create_revision, first);
  EXPECT_EQ(found->mod_revision, second);
  EXPECT_EQ(found->version, 2);
}

TEST_P(StoreContract, PuttingTheSameValueIsAChangeToo) {
  const Revision first = put("a", "1");
  EXPECT_GT(put("a", "1"), first);
  EXPECT_EQ(at("a").version, 2);
}

TEST_P(StoreContract, ADeletedKeyStartsOver) {
  put("a");
  put("a");
  erase("a");
  EXPECT_FALSE(get("a"));
  const Revision revision = put("a");
  EXPECT_EQ(at("a").create_revision, revision);
  EXPECT_EQ(at("a").version, 1);
}

TEST_P(StoreContract, ATransactionHasOneRevisionWhateverItChanges) {
  put("c");
  const Revision revision = txn({{}, {put_of("a"), Delete{one("c")}, put_of("b")}, {}}).revision;
  EXPECT_EQ(at("a").mod_revision, revision);
  EXPECT_EQ(at("b").mod_revision, revision);
}

TEST_P(StoreContract, ATransactionThatChangesNothingDoesNotRaiseTheRevision) {
  if (!under_test().is_alone()) GTEST_SKIP() << "others raise it";
  const Revision revision = put("a");
  EXPECT_EQ(txn({{}, {Read{one("a")}}, {}}).revision, revision);
  EXPECT_EQ(txn({{}, {Delete{one("b")}}, {}}).revision, revision);
  const Compare never{one("a"), Target::version, Is::equal, 9};
  EXPECT_EQ(txn({{never}, {put_of("a")}, {Read{one("a")}}}).revision, revision);
  EXPECT_EQ(put("a"), revision + 1);
}

TEST_P(StoreContract, KeysAndValuesAreBytes) {
  const std::string zero("x\0y", 3);
  put(zero, zero);
  put("x\xFF", "\xFF");
  put("x~");
  EXPECT_EQ(at(zero).value, zero);
  EXPECT_EQ(at("x\xFF").value, "\xFF");
  EXPECT_EQ(names_in(under("x")), (Names{zero, "x~", "x\xFF"}));
}

TEST_P(StoreContract, AValueMayBeEmpty) {
  put("a", "");
  EXPECT_EQ(at("a").value, "");
  EXPECT_TRUE(holds({one("a"), Target::value, Is::equal, 0, ""}));
}

// Ranges

TEST_P(StoreContract, ARangeIsReadInOrderAndItsEndIsNotInIt) {
  for (const char* name : {"d", "b", "a", "c", "bb"}) put(name);
  EXPECT_EQ(names_in({key("a"), key("c")}), (Names{"a", "b", "bb"}));
  EXPECT_EQ(names_in({key("aa"), key("cc")}), (Names{"b", "bb", "c"}));
}

TEST_P(StoreContract, ARangeWithoutAnEndIsOneKey) {
  put("a");
  put("aa");
  EXPECT_EQ(names_in({key("a"), ""}), Names{"a"});
}

TEST_P(StoreContract, ARangeThatEndsBeforeItBeginsIsEmpty) {
  put("a");
  put("b");
  EXPECT_EQ(read({{key("b"), key("a")}}).count, 0);
  EXPECT_EQ(read({{key("a"), key("a")}}).count, 0);
}

TEST_P(StoreContract, KeysUnderAPrefixAreThoseThatBeginWithIt) {
  for (const char* name : {"a", "a/", "a/1", "a/\xFF\xFF", "a0", "b"}) put(name);
  EXPECT_EQ(names_in(under("a/")), (Names{"a/", "a/1", "a/\xFF\xFF"}));
}

TEST_P(StoreContract, APrefixMayEndInTheLastByteThereIs) {
  for (const char* name : {"a\xFE", "a\xFF", "a\xFF\x01", "a\xFF\xFF", "a\xFF\xFF\xFF", "b"}) {
    put(name);
  }
  EXPECT_EQ(names_in(under("a\xFF")), (Names{"a\xFF", "a\xFF\x01", "a\xFF\xFF", "a\xFF\xFF\xFF"}));
  EXPECT_EQ(names_in(under("a\xFF\xFF")), (Names{"a\xFF\xFF", "a\xFF\xFF\xFF"}));
}

TEST_P(StoreContract, AnEndOfOneZeroByteMeansToTheLastKey) {
  put("a");
  put("b");
  const std::string last(1, '\0');
  EXPECT_GE(read({{key("a"), last}, 0, true}).count, 2);
  const ReadAnswer all = read({keys_under(""), 1});
  EXPECT_GE(all.count, 2);
  EXPECT_EQ(all.keys.size(), 1U);
}

TEST_P(StoreContract, ALimitCutsTheKeysAndNotTheCount) {
  for (const char* name : {"a", "b", "c"}) put(name);
  const ReadAnswer two = read({under(""), 2});
  ASSERT_EQ(two.keys.size(), 2U);
  EXPECT_EQ(two.keys[0].key, key("a"));
  EXPECT_EQ(two.keys[1].key, key("b"));
  EXPECT_EQ(two.count, 3);
  EXPECT_EQ(read({under(""), 9}).keys.size(), 3U);
}

TEST_P(StoreContract, CountOnlyGivesNoKeys) {
  for (const char* name : {"a", "b", "c"}) put(name);
  const ReadAnswer counted = read({under(""), 0, true});
  EXPECT_EQ(counted.count, 3);
  EXPECT_TRUE(counted.keys.empty());
  EXPECT_EQ(read({under(""), 1, true}).count, 3);
}

TEST_P(StoreContract, DeletingARangeTellsHowManyKeysWereThere) {
  for (const char* name : {"a/1", "a/2", "b"}) put(name);
  const TxnAnswer answer = txn({{}, {Delete{under("a/")}, Delete{under("a/")}}, {}});
  ASSERT_EQ(answer.answers.size(), 2U);
  EXPECT_EQ(std::get<DeleteAnswer>(answer.answers[0]).deleted, 2);
  EXPECT_EQ(std::get<DeleteAnswer>(answer.answers[1]).deleted, 0);
  EXPECT_EQ(names_in(under("")), Names{"b"});
}

}  // namespace weir
