// The same random calls to the memory store and to etcd: they must be answered alike, and watches
// be told the same. WEIR_TEST_SEED repeats a run.

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "coordination/memory_store.h"
#include "tests/etcd/etcd_loop.h"
#include "tests/support/etcd_cluster.h"

namespace weir::test {
namespace {

constexpr int kCalls = 4'000;

class StillClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return SteadyTime{} + std::chrono::hours{1}; }
  WallTime wall_now() const override { return WallTime{}; }
};

// Answers and events in words, with revisions counted from `base`.
class Words {
 public:
  explicit Words(Revision base) : base_(base) {}

  std::string revision(Revision revision) const {
    return revision == 0 ? "-" : std::to_string(revision - base_);
  }
  std::string key(const KeyValue& key) const {
    std::ostringstream out;
    out << testing::PrintToString(key.key) << '=' << key.value << " c"
        << revision(key.create_revision) << " m" << revision(key.mod_revision) << " v"
        << key.version << " l" << key.lease;
    return out.str();
  }
  std::string answer(const Answer<TxnAnswer>& answer) const {
    if (const auto* error = std::get_if<StoreError>(&answer)) return refusal(*error);
    const auto& txn = std::get<TxnAnswer>(answer);
    std::string text = (txn.succeeded ? "then at " : "otherwise at ") + revision(txn.revision);
    for (const OpAnswer& op : txn.answers) {
      if (const auto* read = std::get_if<ReadAnswer>(&op)) {
        text += "; " + std::to_string(read->count) + " there";
        for (const KeyValue& found : read->keys) text += ", " + key(found);
      } else if (const auto* erased = std::get_if<DeleteAnswer>(&op)) {
        text += "; deleted " + std::to_string(erased->deleted);
      } else {
        text += "; put";
      }
    }
    return text;
  }
  std::string answer(const Answer<LeaseTerm>& answer) const {
    if (const auto* error = std::get_if<StoreError>(&answer)) return refusal(*error);
    return "term " + std::to_string(std::get<LeaseTerm>(answer).ttl.count());
  }
  std::string events(Revision at, std::span<const WatchEvent> events) const {
    std::string text = "at " + revision(at);
    for (const WatchEvent& event : events) {
      text += (event.kind == WatchEvent::Kind::put ? "; put " : "; deleted ") + key(event.key);
    }
    return text;
  }

 private:
  static std::string refusal(const StoreError& error) {
    return "refused: " + std::to_string(static_cast<int>(error.kind));
  }
  const Revision base_;
};

std::string words_of(const KeyRange& range) {
  return testing::PrintToString(range.key) +
         (range.end.empty() ? "" : " to " + testing::PrintToString(range.end));
}

std::string words_of(const std::vector<Op>& ops) {
  std::string text;
  for (const Op& op : ops) {
    if (const auto* put = std::get_if<Put>(&op)) {
      text +=
          "\n  put " + testing::PrintToString(put->key) + " lease " + std::to_string(put->lease);
    } else if (const auto* read = std::get_if<Read>(&op)) {
      text += "\n  read " + words_of(read->range);
    } else {
      text += "\n  delete " + words_of(std::get<Delete>(op).range);
    }
  }
  return text;
}

std::string words_of(const Txn& txn) {
  std::string text = "if";
  for (const Compare& compare : txn.compares) {
    text += "\n  " + words_of(compare.range) + " target " +
            std::to_string(static_cast<int>(compare.target)) + " is " +
            std::to_string(static_cast<int>(compare.is)) + " " + std::to_string(compare.number) +
            compare.value;
  }
  return text + "\nthen" + words_of(txn.then) + "\notherwise" + words_of(txn.otherwise);
}

// A watch and what it was told.
struct Watched {
  std::vector<std::string> told;
  std::unique_ptr<Watch> watch;
};

std::unique_ptr<Watched> watch_on(Store& store, const KeyRange& range, Revision from,
                                  const Words& words) {
  auto watched = std::make_unique<Watched>();
  auto& told = watched->told;
  watched->watch = store.watch(range, from,
                               {[&told, &words](Revision at, std::span<const WatchEvent> events) {
                                  told.push_back(words.events(at, events));
                                },
                                [&told] { told.emplace_back("lost"); }});
  return watched;
}

class EtcdDifferential : public testing::Test {
 protected:
  static std::uint64_t choose_seed() {
    const char* given = std::getenv("WEIR_TEST_SEED");
    return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  }

  // Time enough on a slow machine: what is tested here is not speed.
  EtcdOptions options() const {
    EtcdOptions options = options_for(cluster_.endpoints());
    options.timeout = 10s;
    return options;
  }

  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  bool once_in(std::uint64_t times) { return below(times) == 0; }

  std::string random_key() {
    static const std::vector<std::string> keys{"a",         "a/", "a/1",  "a/2",
                                               "a/\xFF",    "a0", "b",    "b\xFF",
                                               "b\xFF\x01", "c",  "\xFF", "\xFF\xFF"};
    return once_in(200) ? "" : keys[below(keys.size())];
  }
  KeyRange random_range() {
    switch (below(4)) {
      case 0:
        return {random_key(), random_key()};
      case 1:
        return keys_under(random_key());
      case 2:
        return {random_key(), once_in(4) ? std::string(1, '\0') : ""};
      default:
        return {random_key(), ""};
    }
  }
  // Counted from the base; 0 is 0.
  Revision random_revision() {
    return once_in(4)
               ? 0
               : revision_ + 2 - static_cast<Revision>(below(std::min(revision_, Revision{12})));
  }
  Compare random_compare() {
    Compare compare{random_range(), static_cast<Compare::Target>(below(5)),
                    static_cast<Compare::Is>(below(4))};
    switch (compare.target) {
      case Compare::Target::version:
        compare.number = static_cast<std::int64_t>(below(4));
        break;
      case Compare::Target::lease:
        compare.number = static_cast<std::int64_t>(below(7));
        break;
      case Compare::Target::value:
        compare.value = std::to_string(below(4));
        break;
      default:
        compare.number = random_revision();
    }
    return compare;
  }
  Op random_op() {
    switch (below(5)) {
      case 0:
      case 1:
        return Put{random_key(), std::to_string(below(4)),
                   once_in(3) ? static_cast<LeaseId>(1 + below(6)) : 0};
      case 2:
        return Delete{random_range()};
      default:
        return Read{random_range(), static_cast<std::int64_t>(below(4)), once_in(4)};
    }
  }
  Txn random_txn() {
    Txn txn;
    for (auto i = below(3); i > 0; --i) txn.compares.push_back(random_compare());
    for (auto i = 1 + below(4); i > 0; --i) txn.then.push_back(random_op());
    for (auto i = below(4); i > 0; --i) txn.otherwise.push_back(random_op());
    return txn;
  }

  // The same transaction as etcd must be told it.
  Txn on_etcd(Txn txn) const {
    for (Compare& compare : txn.compares) {
      const bool is_revision =
          compare.target == Compare::Target::create || compare.target == Compare::Target::mod;
      if (is_revision && compare.number != 0) compare.number += base_;
    }
    return txn;
  }

  void both_txn() {
    const Txn txn = random_txn();
    std::string expected;
    memory_.txn(txn,
                [&](const Answer<TxnAnswer>& answer) { expected = memory_words_.answer(answer); });
    const Answer<TxnAnswer> got = loop_.txn(on_etcd(txn));
    EXPECT_EQ(etcd_words_->answer(got), expected) << words_of(txn);
    revision_ = memory_.revision();
  }
  void both_lease() {
    const auto lease = static_cast<LeaseId>(1 + below(6));
    // Nothing expires meanwhile.
    const auto ttl = once_in(20) ? std::chrono::seconds{9'000'000'001}
                                 : std::chrono::seconds{1'000 + below(1'000)};
    std::string expected, got;
    const auto note = [](std::string& to, const Words& words) {
      return [&to, &words](const Answer<LeaseTerm>& answer) { to = words.answer(answer); };
    };
    const auto what = below(3);
    const auto call = [&](Store& store, Callback<LeaseTerm> callback) {
      if (what == 0) return store.grant(lease, ttl, std::move(callback));
      if (what == 1) return store.keep_alive(lease, std::move(callback));
      store.revoke(lease, std::move(callback));
    };
    call(memory_, note(expected, memory_words_));
    call(loop_.store(), note(got, *etcd_words_));
    ASSERT_TRUE(loop_.run_until([&] { return !got.empty(); }));
    EXPECT_EQ(got, expected) << "call " << what << " of lease " << lease;
    revision_ = memory_.revision();
  }

  void both_watch() {
    KeyRange range = random_range();
    if (range.key.empty()) return;
    // Not from now on: when that is, is etcd's to say.
    Revision from = std::max<Revision>(2, revision_ + 2 - static_cast<Revision>(below(20)));
    // etcd tells what is left of the revision it was compacted at; the memory store, nothing.
    if (from == compacted_) ++from;
    expected_.push_back(watch_on(memory_, range, from, memory_words_));
    watched_.push_back(watch_on(loop_.store(), range, from + base_, *etcd_words_));
    if (watched_.size() > 8) end_first_watch();
  }
  void end_first_watch() {
    EXPECT_TRUE(loop_.run_until(
        [this] { return watched_.front()->told.size() >= expected_.front()->told.size(); }));
    EXPECT_EQ(watched_.front()->told, expected_.front()->told);
    watched_.erase(watched_.begin());
    expected_.erase(expected_.begin());
  }
  void both_compact() {
    const Revision at = revision_ - static_cast<Revision>(below(8));
    if (at <= compacted_) return;
    compacted_ = at;
    // A watch that has not caught up would be lost on etcd only.
    while (!watched_.empty()) end_first_watch();
    memory_.compact(at);
    cluster_.etcdctl({"compact", std::to_string(at + base_)});
  }

  const std::uint64_t seed_ = choose_seed();
  SeededRandom random_{seed_};
  EtcdCluster cluster_;
  EtcdLoop loop_{options()};
  StillClock clock_;
  MemoryStore memory_{clock_, {.history = 1'000'000}};
  Revision base_ = 0;
  Revision revision_ = 1, compacted_ = 0;  // of the memory store
  const Words memory_words_{0};
  std::optional<Words> etcd_words_;
  std::vector<std::unique_ptr<Watched>> expected_, watched_;
};

TEST_F(EtcdDifferential, BothStoresAnswerAlike) {
  std::cout << "WEIR_TEST_SEED=" << seed_ << '\n';
  // Another history than the memory store's, so that no revision is right by chance.
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(loop_.put_at_last("0"));
  const auto emptied = loop_.txn({{}, {Delete{keys_under("")}}, {}});
  base_ = std::get<TxnAnswer>(emptied).revision - memory_.revision();
  ASSERT_GT(base_, 0);
  etcd_words_.emplace(base_);

  for (int call = 0; call < kCalls && !HasFailure(); ++call) {
    SCOPED_TRACE("call " + std::to_string(call) + ", WEIR_TEST_SEED=" + std::to_string(seed_));
    if (once_in(400)) {
      both_compact();
    } else if (once_in(15)) {
      both_watch();
    } else if (once_in(4)) {
      both_lease();
    } else {
      both_txn();
    }
  }
  while (!watched_.empty() && !HasFailure()) end_first_watch();
  EXPECT_EQ(loop_.replaced, 0);
}

}  // namespace
}  // namespace weir::test
