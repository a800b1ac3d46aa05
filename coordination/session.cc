#include "coordination/session.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kTtl{10};
constexpr seconds kKeepEvery{3};
constexpr milliseconds kRetry{500};
constexpr seconds kNameRetry{1};

}  // namespace

void Session::run(SteadyTime now) {
  if (ended_ || under_way_ || now < due_) return;
  // A name that is taken is tried for again and again, under a lease that must not run out.
  const bool keep_first = step_ == Step::put && now >= kept_at_ + kKeepEvery;
  if (step_ == Step::grant) {
    grant();
  } else if (step_ == Step::keep || keep_first) {
    keep_alive();
  } else {
    put();
  }
}

std::optional<SteadyTime> Session::next_due() const {
  if (ended_ || under_way_) return std::nullopt;
  return due_;
}

void Session::next(Step step, SteadyTime::duration in) {
  ++era_;
  under_way_ = false;
  step_ = step;
  due_ = clock_.steady_now() + in;
}

// Full jitter, so that replicas that failed together do not come back together.
void Session::again(SteadyTime::duration at_most) {
  const auto most = std::chrono::duration_cast<milliseconds>(at_most);
  next(step_, milliseconds{random_.below(static_cast<std::uint64_t>(most.count())) + 1});
}

void Session::set(State state) {
  if (std::exchange(state_, state) != state) changed_();
}

template <class T>
Callback<T> Session::if_current(std::function<void(Answer<T>)> handle) {
  under_way_ = true;
  return [this, era = ++era_, handle = std::move(handle)](Answer<T> answer) {
    if (era != era_) return;
    under_way_ = false;
    handle(std::move(answer));
  };
}

// A lease whose grant was not heard of is left to run out.
void Session::grant() {
  lease_ = static_cast<LeaseId>(random_.next() >> 1) | 1;
  kept_at_ = clock_.steady_now();
  store_.grant(lease_, kTtl, if_current<LeaseTerm>([this](Answer<LeaseTerm> answer) {
                 if (std::holds_alternative<StoreError>(answer)) return again(kRetry);
                 next(Step::put, seconds{0});
               }));
}

void Session::put() {
  Txn txn;
  txn.compares.push_back({{key_, ""}, Compare::Target::create, Compare::Is::equal, 0});
  txn.then.push_back(Put{key_, value_, lease_});
  txn.otherwise.push_back(Read{{key_, ""}});
  store_.txn(std::move(txn), if_current<TxnAnswer>([this](Answer<TxnAnswer> answer) {
               if (const auto* told = std::get_if<TxnAnswer>(&answer)) return on_put(*told);
               const bool gone = std::get<StoreError>(answer).kind == StoreError::Kind::lease_gone;
               if (gone) step_ = Step::grant;
               again(kRetry);
             }));
}

// A key under our own lease is ours: an earlier copy of the transaction put it.
void Session::on_put(const TxnAnswer& answer) {
  bool ours = answer.succeeded;
  if (!ours) {
    const auto& keys = std::get<ReadAnswer>(answer.answers.front()).keys;
    ours = !keys.empty() && keys.front().lease == lease_;
  }
  if (ours) {
    next(Step::keep,
         std::max<SteadyTime::duration>(kept_at_ + kKeepEvery - clock_.steady_now(), seconds{0}));
  } else {
    next(Step::put, kNameRetry);
  }
  set(ours ? State::held : State::name_taken);
}

void Session::keep_alive() {
  const SteadyTime sent = clock_.steady_now();
  store_.keep_alive(lease_, if_current<LeaseTerm>([this, sent](Answer<LeaseTerm> answer) {
                      const auto* term = std::get_if<LeaseTerm>(&answer);
                      if (!term) return again(kRetry);
                      if (term->ttl.count() == 0) return start_over();
                      kept_at_ = sent;
                      next(step_, step_ == Step::keep ? SteadyTime::duration{kKeepEvery}
                                                      : SteadyTime::duration{0});
                    }));
}

void Session::saw(std::optional<LeaseId> lease) {
  if (ended_) return;
  const bool lost = state_ == State::held && lease != lease_;
  const bool free = state_ == State::name_taken && !lease;
  if (lost || free) next(Step::put, seconds{0});
}

void Session::start_over() {
  if (ended_) return;
  next(Step::grant, seconds{0});
  set(State::absent);
}

void Session::end(std::function<void()> done) {
  ended_ = true;
  ++era_;
  if (lease_ == 0) return done();
  store_.revoke(lease_, [done = std::move(done)](Answer<LeaseTerm>) { done(); });
}

}  // namespace weir
