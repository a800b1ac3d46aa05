#include "tests/contract/store_contract.h"

namespace weir {

using Kind = StoreError::Kind;

WatchHandler Seen::handler() {
  return {[this](Revision revision, std::span<const WatchEvent> events) {
            steps.push_back({revision, {events.begin(), events.end()}});
          },
          [this] { ++lost; }};
}

std::vector<std::string> Seen::told(std::string_view prefix) const {
  std::vector<std::string> lines;
  for (const Step& step : steps) {
    std::string line;
    for (const WatchEvent& event : step.events) {
      if (!line.empty()) line += ", ";
      const std::string name = event.key.key.substr(prefix.size());
      line += event.kind == WatchEvent::Kind::put ? "put " + name + "=" + event.key.value
                                                  : "deleted " + name;
    }
    lines.push_back(line);
  }
  return lines;
}

void StoreContract::SetUp() {
  under_test_ = GetParam().make();
  prefix_ = under_test_->prefix();
}

void StoreContract::TearDown() {
  if (!under_test_) return;
  txn({.compares = {}, .then = {Delete{keys_under(prefix_)}}, .otherwise = {}});
  EXPECT_EQ(asked_, answered_) << "a callback was called more than once, or not at all";
}

template <class T>
Answer<T> StoreContract::ask(const std::function<void(Callback<T>)>& call) {
  auto answer = std::make_shared<std::optional<Answer<T>>>();
  ++asked_;
  call([this, answer](Answer<T> got) {
    ++answered_;
    *answer = std::move(got);
  });
  wait_for([&] { return answer->has_value(); });
  if (answer->has_value()) return **answer;
  return StoreError{Kind::unknown, "never answered"};
}

Answer<TxnAnswer> StoreContract::try_txn(Txn txn) {
  return ask<TxnAnswer>([&](auto callback) { store().txn(std::move(txn), std::move(callback)); });
}

TxnAnswer StoreContract::txn(Txn txn) {
  Answer<TxnAnswer> answer = try_txn(std::move(txn));
  if (const auto* error = std::get_if<StoreError>(&answer)) {
    ADD_FAILURE() << "refused: " << error->detail;
    return {};
  }
  return std::get<TxnAnswer>(std::move(answer));
}

StoreError::Kind StoreContract::refusal_of(Txn txn) {
  const Answer<TxnAnswer> answer = try_txn(std::move(txn));
  if (const auto* error = std::get_if<StoreError>(&answer)) return error->kind;
  ADD_FAILURE() << "not refused";
  return Kind::unknown;
}

Answer<LeaseTerm> StoreContract::grant(LeaseId lease, std::chrono::seconds ttl) {
  return ask<LeaseTerm>([&](auto callback) { store().grant(lease, ttl, std::move(callback)); });
}

Answer<LeaseTerm> StoreContract::keep_alive(LeaseId lease) {
  return ask<LeaseTerm>([&](auto callback) { store().keep_alive(lease, std::move(callback)); });
}

Answer<LeaseTerm> StoreContract::revoke(LeaseId lease) {
  return ask<LeaseTerm>([&](auto callback) { store().revoke(lease, std::move(callback)); });
}

LeaseId StoreContract::granted(std::chrono::seconds ttl) {
  const LeaseId lease = fresh_lease();
  EXPECT_TRUE(std::holds_alternative<LeaseTerm>(grant(lease, ttl)));
  return lease;
}

Put StoreContract::put_of(std::string_view name, std::string value, LeaseId lease) const {
  return {key(name), std::move(value), lease};
}

Revision StoreContract::put(std::string_view name, std::string value, LeaseId lease) {
  return txn({{}, {put_of(name, std::move(value), lease)}, {}}).revision;
}

Revision StoreContract::erase(std::string_view name) {
  return txn({{}, {Delete{one(name)}}, {}}).revision;
}

std::optional<KeyValue> StoreContract::get(std::string_view name) {
  const ReadAnswer answer = read({one(name)});
  if (answer.keys.empty()) return std::nullopt;
  return answer.keys.front();
}

KeyValue StoreContract::at(std::string_view name) {
  const auto found = get(name);
  EXPECT_TRUE(found) << name << " is not there";
  return found.value_or(KeyValue{});
}

ReadAnswer StoreContract::read(Read read) {
  const TxnAnswer answer = txn({{}, {std::move(read)}, {}});
  if (answer.answers.size() != 1) return ADD_FAILURE() << "not one answer", ReadAnswer{};
  return std::get<ReadAnswer>(answer.answers.front());
}

std::vector<std::string> StoreContract::names_in(KeyRange range) {
  std::vector<std::string> names;
  for (const KeyValue& found : read({std::move(range)}).keys) {
    names.push_back(found.key.substr(prefix_.size()));
  }
  return names;
}

bool StoreContract::holds(Compare compare) { return holds_all({std::move(compare)}); }

bool StoreContract::holds_all(std::vector<Compare> compares) {
  return txn({std::move(compares), {Read{one("any")}}, {Read{one("any")}}}).succeeded;
}

void StoreContract::wait_for(const std::function<bool()>& done) {
  ASSERT_TRUE(under_test_->run_until(done)) << "waited in vain";
}

bool StoreContract::comes_true(const std::function<bool()>& condition) {
  for (int tries = 0; tries < 15; ++tries) {
    if (condition()) return true;
    under_test_->pass(std::chrono::seconds(1));
  }
  return condition();
}

}  // namespace weir
