// Cooldowns in virtual time: what an upstream's 429s and 503s delay, for how long, and how those
// who were held are let go. Case numbers are those of the specification.

#include "proxy/cooldown.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "proxy/attempt/backoff.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using std::chrono::duration;
using std::chrono::nanoseconds;
using Kind = Cooldown::Verdict::Kind;
using Scope = CooldownOptions::Scope;

constexpr double kAlmostOne = 1 - 0x1.0p-53;

double in_seconds(nanoseconds time) { return duration<double>(time).count(); }

CooldownOptions defaults() {
  CooldownOptions options;
  options.enabled = true;
  return options;
}

// A memory with a clock of its own; requests are sent, and answered, now.
class Memory {
 public:
  explicit Memory(const CooldownOptions& options = defaults(),
                  std::size_t most = FailureMemory::kMostProjects)
      : memory(options, most) {}

  void pass(nanoseconds time) {
    now.steady += std::chrono::duration_cast<SteadyTime::duration>(time);
    now.wall += std::chrono::duration_cast<WallTime::duration>(time);
  }
  // Sent a moment ago.
  nanoseconds fail(int status, double random, const std::string& project = "a",
                   nanoseconds retry_after = 0s) {
    memory.failed({status, project, now.steady, retry_after, random}, now);
    return delay(project);
  }
  void succeed(const std::string& project = "a") { memory.succeeded(project, now.steady); }
  nanoseconds delay(const std::string& project = "a") {
    const auto until = memory.not_before(project, now.steady);
    return until ? *until - now.steady : 0ns;
  }
  // The delay is over, and then something.
  void wait(const std::string& project = "a") { pass(delay(project) + 1ms); }

  Instant now{SteadyTime{1h}, WallTime{std::chrono::seconds{1'800'000'000}}};
  FailureMemory memory;
};

std::vector<double> delays(Memory& memory, double random, int count) {
  std::vector<double> result;
  for (int i = 0; i < count; ++i) {
    result.push_back(std::round(in_seconds(memory.fail(429, random)) * 1e6) / 1e6);
    memory.wait();
  }
  return result;
}

TEST(Backoffs, EachKindStaysInItsBoundsAndHasItsMean) {  // J-0
  std::mt19937_64 engine(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  constexpr int kDraws = 100'000, kSteps = 8;
  const auto plain = [](int n) { return std::min(500.0, 10 * std::pow(2, n - 1)); };
  struct Case {
    Jitter jitter;
    double low, high, mean;  // of the plain delay
  };
  for (const Case& one :
       {Case{Jitter::none, 1, 1, 1}, Case{Jitter::full, 0, 1, 0.5},
        Case{Jitter::equal, 0.5, 1, 0.75}, Case{Jitter::proportional, 0.8, 1.2, 1}}) {
    std::vector<double> sums(kSteps + 1);
    for (int draw = 0; draw < kDraws; ++draw) {
      Backoff backoff({10s, 500s, 2, one.jitter});
      for (int n = 1; n <= kSteps; ++n) {
        const double delay = in_seconds(backoff.next(uniform(engine)));
        sums[static_cast<std::size_t>(n)] += delay;
        ASSERT_GE(delay, one.low * plain(n) - 1e-6);
        ASSERT_LE(delay, one.high * plain(n));
      }
    }
    for (int n = 1; n <= kSteps; ++n) {
      const double mean = sums[static_cast<std::size_t>(n)] / kDraws;
      EXPECT_NEAR(mean, one.mean * plain(n), one.mean * plain(n) / 100) << n;
    }
  }
  for (int draw = 0; draw < kDraws; ++draw) {
    Backoff backoff({10s, 500s, 2, Jitter::decorrelated});
    for (int n = 1; n <= kSteps; ++n) {
      const nanoseconds delay = backoff.next(uniform(engine));
      ASSERT_GE(delay, 10s);
      ASSERT_LE(delay, 500s);
    }
  }
}

TEST(FailureMemory, DelaysDoubleWithEachFailureUpToTheMaximum) {  // J-1
  Memory half, whole;
  EXPECT_EQ(delays(half, 0.5, 7), (std::vector<double>{15, 30, 60, 120, 240, 300, 300}));
  EXPECT_EQ(delays(whole, kAlmostOne, 6), (std::vector<double>{30, 60, 120, 240, 480, 600}));
}

TEST(FailureMemory, TheThirdDelayIsUniformUpToFourTimesTheBase) {  // J-2
  std::mt19937_64 engine(11);
  std::uniform_real_distribution<double> uniform(0, 1);
  constexpr int kDraws = 100'000;
  std::vector<double> drawn;
  for (int i = 0; i < kDraws; ++i) {
    Memory memory;
    memory.fail(429, 0);
    memory.pass(1ms);
    memory.fail(429, 0);
    memory.pass(1ms);
    drawn.push_back(in_seconds(memory.fail(429, uniform(engine))));
  }
  std::ranges::sort(drawn);
  double sum = 0, distance = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = drawn[static_cast<std::size_t>(i)];
    sum += value;
    distance = std::max(distance, std::abs(value / 120 - (i + 0.5) / kDraws));
  }
  EXPECT_NEAR(sum / kDraws, 60, 0.3);
  EXPECT_LT(distance, 1.63 / std::sqrt(kDraws)) << "Kolmogorov-Smirnov, 1 %";
  EXPECT_LT(drawn.front(), 1);
  EXPECT_GT(drawn.back(), 119);
}

TEST(FailureMemory, WhoComesWhenTheDelayIsOverIsSentAtOnce) {  // J-3
  Memory memory;
  memory.fail(429, kAlmostOne);
  memory.pass(1000s);
  EXPECT_EQ(memory.delay(), 0s);
}

TEST(FailureMemory, Of503And429TheLaterHolds) {  // J-4
  for (const auto& [first, second] : {std::pair{503, 429}, std::pair{429, 503}}) {
    Memory memory;
    memory.fail(first, 0.5);
    memory.fail(second, 0.5);
    EXPECT_EQ(memory.delay(), 15s) << "429: 15 s, 503: 0.5 s";
    memory.fail(503, 0.5, "a", 40s);
    EXPECT_EQ(memory.delay(), 40s);
  }
}

TEST(FailureMemory, Of503And429TheFirstIsLookedAtFirst) {
  Memory memory;
  memory.fail(429, 0.5);
  memory.fail(503, 0.5);
  auto options = defaults();
  options.on_503.scope = Scope::project;
  memory.memory.configure(options);
  memory.fail(503, 0.5);
  std::vector<std::pair<std::string, int>> met;
  for (const auto& one : memory.memory.met_by("a", memory.now.steady)) {
    met.emplace_back(one.name.project, one.name.status);
  }
  using Met = std::vector<std::pair<std::string, int>>;
  EXPECT_EQ(met, (Met{{"a", 503}, {"a", 429}, {"", 503}}));
}

TEST(FailureMemory, ASuccessClearsAndTheNextFailureIsTheFirst) {  // J-5
  Memory memory;
  memory.fail(429, 0.5);
  memory.wait();
  EXPECT_EQ(memory.fail(429, 0.5), 30s);
  memory.fail(503, 0.5);
  memory.wait();
  memory.succeed();
  EXPECT_TRUE(memory.memory.empty());
  EXPECT_EQ(memory.fail(429, 0.5), 15s);
}

TEST(FailureMemory, ASuccessThatWasSentBeforeTheFailureClearsNothing) {
  Memory memory;
  const SteadyTime before = memory.now.steady;
  memory.pass(1s);
  memory.fail(429, 0.5);
  memory.memory.succeeded("a", before);
  EXPECT_EQ(memory.delay(), 15s);
  memory.memory.succeeded("a", memory.now.steady);
  EXPECT_EQ(memory.delay(), 15s) << "nor one sent in the same moment";
}

TEST(FailureMemory, FailuresOfRequestsThatWereUnderWayTogetherAreOneFailure) {
  Memory memory;
  const SteadyTime sent = memory.now.steady;
  for (int i = 0; i < 50; ++i) {
    memory.pass(1ms);
    memory.memory.failed({429, "a", sent, 0s, kAlmostOne}, memory.now);
  }
  EXPECT_EQ(memory.memory.find({"a", 429})->shared.failures, 1);
  EXPECT_LT(memory.delay(), 30s);
  memory.memory.failed({429, "a", sent, 100s, 0}, memory.now);
  EXPECT_EQ(memory.delay(), 100s) << "but the longest Retry-After holds";
}

TEST(FailureMemory, OnlyTheTwoStatusesCount) {  // J-6
  for (int status = 100; status < 600; ++status) {
    EXPECT_EQ(FailureMemory::counts(status), status == 429 || status == 503) << status;
  }
}

TEST(FailureMemory, ARestartKeepsTheDelay) {  // J-7
  Memory before;
  before.fail(429, 0.5);
  before.wait();
  before.fail(429, 0.5);
  before.fail(503, 0.5, "b", 100s);
  before.pass(10s);
  Memory after;
  after.now = {SteadyTime{5s}, before.now.wall};  // another steady clock
  for (const auto& [name, record] : before.memory.all()) {
    after.memory.learn(name, record->shared, after.now);
  }
  EXPECT_EQ(after.delay("a"), 90s) << "the 503";
  EXPECT_EQ(after.delay("b"), 90s);
  after.memory.forget({"", 503});
  EXPECT_EQ(after.delay("a"), 20s);
  after.wait();
  EXPECT_EQ(after.fail(429, 0.5), 60s) << "the third";
}

TEST(FailureMemory, NoNumberOfFailuresOverflows) {  // J-8
  for (const int failures : {62, 63, 64, 65, 1000, std::numeric_limits<int>::max()}) {
    EXPECT_EQ(cooldown_range(defaults().on_429, failures), 600s) << failures;
  }
  EXPECT_EQ(cooldown_range({24h, 24h, Scope::project}, 1000), 24h);
  EXPECT_EQ(cooldown_range({1ms, 24h, Scope::project}, 27), 1ms * (1 << 26));
  Memory memory;
  for (int i = 0; i < 1000; ++i) {
    memory.fail(429, 0);
    memory.pass(1ms);
  }
  EXPECT_LE(memory.fail(429, kAlmostOne), 600s);
  EXPECT_GT(memory.delay(), 599s);
}

TEST(FailureMemory, A429DelaysItsProjectAndNoOther) {  // J-9
  Memory memory;
  memory.fail(429, 0.5, "a");
  EXPECT_EQ(memory.delay("a"), 15s);
  EXPECT_EQ(memory.delay("b"), 0s);
  EXPECT_EQ(memory.delay("ab"), 0s);
}

TEST(FailureMemory, A503DelaysAllOrItsProjectAsTheScopeSays) {
  Memory global;
  global.fail(503, 0.5, "a");
  EXPECT_EQ(global.delay("b"), 500ms);
  auto options = defaults();
  options.on_503.scope = Scope::project;
  options.on_429.scope = Scope::global;
  Memory turned(options);
  turned.fail(503, 0.5, "a");
  EXPECT_EQ(turned.delay("a"), 500ms);
  EXPECT_EQ(turned.delay("b"), 0s);
  turned.fail(429, 0.5, "a");
  EXPECT_EQ(turned.delay("b"), 15s);
}

TEST(FailureMemory, AnyProjectsSuccessClearsWhatIsForAll) {
  Memory memory;
  memory.fail(503, 0.5, "a");
  memory.fail(429, 0.5, "a");
  memory.pass(1ms);
  memory.succeed("b");
  EXPECT_EQ(memory.delay("b"), 0s);
  EXPECT_EQ(memory.delay("a"), 15s - 1ms) << "the 429 is its own";
}

TEST(FailureMemory, RetryAfterIsNeverShortened) {  // J-11
  Memory memory;
  EXPECT_EQ(memory.fail(429, 10.0 / 30, "a", 120s), 120s);
  EXPECT_EQ(memory.fail(429, 0.5, "b", 10s), 15s) << "but lengthened";
  memory.pass(1s);
  EXPECT_EQ(memory.fail(429, 0.01), 119s) << "a later failure does not either";
  EXPECT_EQ(memory.fail(503, 0.5, "c", 3h), 3h) << "nor does max";
}

TEST(FailureMemory, AClockThatIsSetBackMakesNoDelayLonger) {
  Memory memory;
  memory.fail(429, 0.5);
  const CooldownRecord record = memory.memory.find({"a", 429})->shared;
  memory.now.wall -= 1h;
  EXPECT_EQ(memory.delay(), 15s) << "it runs on the steady clock";
  Memory other;
  other.now.wall = memory.now.wall;
  other.memory.learn({"a", 429}, record, other.now);
  EXPECT_EQ(other.delay(), 15s) << "what comes from elsewhere lasts no longer than it did there";
}

TEST(FailureMemory, MergedRecordsAreTheSameInAnyOrder) {
  Memory maker;
  std::vector<CooldownRecord> seen;
  for (int i = 0; i < 3; ++i) {
    Memory replica;
    replica.now = maker.now;
    for (int n = 0; n <= i; ++n) {
      replica.fail(429, 0.3 * (3 - i));
      replica.pass(2s);
    }
    seen.push_back(replica.memory.find({"a", 429})->shared);
  }
  std::vector<int> order{0, 1, 2};
  std::optional<CooldownRecord> result;
  std::optional<nanoseconds> delay;
  do {
    Memory memory;
    for (const int i : order) {
      memory.memory.learn({"a", 429}, seen[static_cast<std::size_t>(i)], memory.now);
      memory.memory.learn({"a", 429}, seen[static_cast<std::size_t>(i)], memory.now);
    }
    const CooldownRecord merged = memory.memory.find({"a", 429})->shared;
    EXPECT_EQ(result.value_or(merged), merged);
    EXPECT_EQ(delay.value_or(memory.delay()), memory.delay());
    result = merged;
    delay = memory.delay();
    for (const CooldownRecord& one : seen) EXPECT_GE(merged.not_before, one.not_before);
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(result->failures, 3);
}

TEST(FailureMemory, ARecordIsForgottenSomeTimeAfterItsDelay) {
  Memory memory;
  memory.fail(429, 0.5);
  memory.pass(15s + 599s);
  EXPECT_EQ(memory.fail(429, 0.5), 30s) << "of use for as long as the longest delay";
  memory.pass(30s + 601s);
  EXPECT_EQ(memory.fail(429, 0.5), 15s);
}

TEST(FailureMemory, RemembersAtMostSoManyProjectsAndThoseLongestThatHaveLongestToWait) {
  Memory memory(defaults(), 100);
  for (int i = 0; i < 10'000; ++i) {
    memory.fail(429, 0, "p" + std::to_string(i), std::chrono::seconds{i % 50 == 0 ? 1000 : 1});
  }
  EXPECT_LE(memory.memory.all().size(), 100u);
  EXPECT_EQ(memory.delay("p9950"), 1000s);
  EXPECT_EQ(memory.delay("p9999"), 1s);
  EXPECT_EQ(memory.delay("p5"), 0s);
}

// Requests before the gate, in virtual time.
class Gate : public testing::Test {
 protected:
  struct Request {
    explicit Request(std::string name) : project(std::move(name)) {
      visitor.project = project;
      visitor.who = this;
      visitor.wake = [](void* who) {
        ++static_cast<Request*>(who)->wakes;
        static_cast<Request*>(who)->ask_again = true;
      };
    }
    const std::string project;
    Cooldown::Visitor visitor;
    int wakes = 0;
    bool ask_again = false, held = false, sent = false, refused = false;
    SteadyTime sent_at{}, until{};
  };
  using Requests = std::vector<std::unique_ptr<Request>>;

  explicit Gate(const CooldownOptions& options = defaults()) : gate_(options, nullptr) {}

  Request& come(const std::string& project = "a") {
    requests_.push_back(std::make_unique<Request>(project));
    ask(*requests_.back());
    return *requests_.back();
  }
  void ask(Request& request) {
    request.ask_again = false;
    tell(request, gate_.ask(request.visitor, now_.steady));
  }
  void tell(Request& request, const Cooldown::Verdict& verdict) {
    request.held = verdict.kind == Kind::held;
    request.sent = verdict.kind == Kind::go;
    request.refused = verdict.kind == Kind::draining;
    request.until = verdict.until;
    if (request.sent) request.sent_at = now_.steady;
  }
  // What their shells do: ask when woken, and at the time that they were told.
  void settle() {
    for (bool again = true; again;) {
      again = false;
      for (auto& request : requests_) {
        const bool due = request->held && request->until <= now_.steady;
        const auto verdict = due ? gate_.ask_again(request->visitor, now_.steady) : std::nullopt;
        if (!verdict && !request->ask_again) continue;
        verdict ? tell(*request, *verdict) : ask(*request);
        again = true;
      }
    }
  }
  void pass(nanoseconds time) {
    now_.steady += std::chrono::duration_cast<SteadyTime::duration>(time);
    now_.wall += std::chrono::duration_cast<WallTime::duration>(time);
    settle();
  }
  void fail(Request& request, int status = 429, nanoseconds retry_after = 0s) {
    gate_.failed(request.visitor, {status, request.project, request.sent_at, retry_after, 0.5},
                 now_);
    settle();
  }
  void succeed(Request& request) {
    gate_.succeeded(request.visitor, request.sent_at, now_);
    settle();
  }
  // A 500, or its client has gone.
  void end(Request& request) {
    gate_.settle(request.visitor, now_.steady);
    settle();
  }
  void leave(Request& request) {
    if (gate_.leave(request.visitor)) request.held = false;
  }
  int sent() const {
    return static_cast<int>(
        std::ranges::count_if(requests_, [](const auto& one) { return one->sent; }));
  }
  // One project's requests, held for the 15 s that a failure brought about.
  Requests::value_type::element_type& hold(int count) {
    Request& first = come();
    fail(first);
    for (int i = 0; i < count; ++i) come();
    EXPECT_EQ(sent(), 1);
    return first;
  }
  Request& request(std::size_t index) { return *requests_.at(index); }

  Instant now_{SteadyTime{1h}, WallTime{std::chrono::seconds{1'800'000'000}}};
  Cooldown gate_;
  Requests requests_;
};

TEST_F(Gate, LetsTheFirstGoAsAProbeAndTheRestWhenItSucceeds) {
  hold(10);
  pass(15s - 1ms);
  EXPECT_EQ(sent(), 1);
  pass(1ms);
  EXPECT_EQ(sent(), 2) << "the probe";
  EXPECT_TRUE(request(1).sent);
  pass(Cooldown::kProbeTime - 1ms);
  EXPECT_EQ(sent(), 2);
  succeed(request(1));
  EXPECT_EQ(sent(), 11);
}

TEST_F(Gate, AProbeThatTakesLongCostsTheOthersItsTimeAndNoMore) {
  hold(10);
  pass(15s);
  for (int probes = 1; probes <= 3; ++probes) {
    EXPECT_EQ(sent(), 1 + probes);
    pass(Cooldown::kProbeTime - 1ms);
    EXPECT_TRUE(come().held) << "nor does anybody pass them";
    EXPECT_EQ(sent(), 1 + probes);
    pass(1ms);
  }
  EXPECT_TRUE(request(4).sent) << "in the order that they came in";
  EXPECT_EQ(sent(), 5);
  succeed(request(4));
  EXPECT_EQ(sent(), 14);
  end(request(1));
  end(request(2));
  EXPECT_TRUE(come().sent);
}

TEST_F(Gate, WhatAProbeIsAnsweredLateCountsAsEver) {
  hold(10);
  pass(15s);
  pass(Cooldown::kProbeTime);
  fail(request(1));
  pass(30s - 1ms);
  EXPECT_EQ(sent(), 3) << "the new delay holds all";
  pass(1ms);
  EXPECT_EQ(sent(), 4);
  pass(Cooldown::kProbeTime);
  EXPECT_EQ(sent(), 5);
  succeed(request(3));
  EXPECT_EQ(sent(), 11);
}

TEST_F(Gate, AProbeWhoseTimeIsOverAndThatAsksAgainStandsBehindTheNext) {
  hold(3);
  pass(15s);
  pass(Cooldown::kProbeTime);
  ask(request(1));
  EXPECT_TRUE(request(1).held);
  pass(Cooldown::kProbeTime);
  EXPECT_TRUE(request(1).sent) << "it came before the third";
  EXPECT_FALSE(request(3).sent);
}

TEST_F(Gate, AProbesTimeIsOverThoughNobodyHasNoticedYet) {
  hold(2);
  pass(15s);
  now_.steady += Cooldown::kProbeTime;
  now_.wall += Cooldown::kProbeTime;
  EXPECT_TRUE(come().held);
  EXPECT_EQ(request(2).wakes, 1);
  settle();
  EXPECT_TRUE(request(2).sent);
}

TEST_F(Gate, TheFirstThatCameIsTheProbeWhoeverNoticesFirstThatTheDelayIsOver) {
  hold(3);
  now_.steady += 15s;
  now_.wall += 15s;
  Request& new_one = come();
  EXPECT_TRUE(new_one.held);
  EXPECT_EQ(request(1).wakes, 1);
  tell(request(3), gate_.ask_again(request(3).visitor, now_.steady).value());
  EXPECT_TRUE(request(3).held);
  settle();
  EXPECT_TRUE(request(1).sent);
  EXPECT_EQ(sent(), 2);
  fail(request(1));
  pass(30s);
  EXPECT_TRUE(request(2).sent) << "and so the next time";
  EXPECT_EQ(sent(), 3);
}

TEST_F(Gate, AProbeThatFailsHoldsTheRestForTheNewDelay) {
  hold(10);
  pass(15s);
  fail(request(1));
  EXPECT_EQ(sent(), 2);
  pass(30s - 1ms);
  EXPECT_EQ(sent(), 2);
  pass(1ms);
  EXPECT_EQ(sent(), 3);
  succeed(request(2));
  EXPECT_EQ(sent(), 11);
}

TEST_F(Gate, AProbeThatTellsNothingLeavesItsTurnToTheNext) {
  hold(4);
  pass(15s);
  end(request(1));
  EXPECT_EQ(sent(), 3);
  end(request(2));
  EXPECT_EQ(sent(), 4);
  succeed(request(3));
  EXPECT_EQ(sent(), 5);
}

TEST_F(Gate, ASuccessOfAnotherRequestSentLaterFreesAllAtOnce) {
  Request& b = come("b");
  fail(b, 503, 60s);
  Request& held = come("a");
  EXPECT_TRUE(held.held);
  pass(60s);
  EXPECT_TRUE(held.sent);
  Request& other = come("a");
  EXPECT_TRUE(other.held) << "behind the probe";
  succeed(held);
  EXPECT_TRUE(other.sent);
}

TEST_F(Gate, WhoComesLateAndMeetsNobodyGoesAtOnce) {  // J-3
  fail(come());
  pass(1000s);
  EXPECT_TRUE(come().sent);
  EXPECT_TRUE(come().sent) << "nobody was delayed, so nobody is a probe";
}

TEST_F(Gate, WhoComesLaterDoesNotPassThoseWhoWereHeld) {
  hold(3);
  pass(15s);
  Request& late = come();
  EXPECT_TRUE(late.held);
  succeed(request(1));
  EXPECT_TRUE(late.sent);
}

TEST_F(Gate, WhoIsHeldAndLeavesIsNeverSentAndNeverCalled) {  // J-10
  hold(2);
  Request& leaving = request(1);
  leave(leaving);
  pass(15s);
  EXPECT_FALSE(leaving.sent);
  EXPECT_EQ(leaving.wakes, 0);
  EXPECT_TRUE(request(2).sent) << "the next is the probe";
}

TEST_F(Gate, WhoLeavesFromBehindAProbeIsPassedOver) {  // J-10
  hold(3);
  pass(15s);
  Request& leaving = request(2);
  leave(leaving);
  end(request(1));
  EXPECT_FALSE(leaving.sent);
  EXPECT_EQ(leaving.wakes, 0);
  EXPECT_TRUE(request(3).sent);
}

TEST_F(Gate, WhoWasChosenAsTheNextProbeAndHasGoneLeavesItToAnother) {
  hold(3);
  pass(15s);
  gate_.settle(request(1).visitor, now_.steady);  // request 2 is called,
  EXPECT_FALSE(gate_.leave(request(2).visitor));
  request(2).ask_again = false;
  end(request(2));  // and does not come
  EXPECT_TRUE(request(3).sent);
}

TEST_F(Gate, A503ForAllHasOneProbeForAll) {
  Request& first = come("a");
  fail(first, 503, 5s);
  come("a");
  come("b");
  come("c");
  pass(5s);
  EXPECT_EQ(sent(), 2);
  succeed(request(1));
  EXPECT_EQ(sent(), 4);
}

TEST_F(Gate, AProjectsOwnDelayKeepsNobodyElsesProbeBack) {
  fail(come("a"), 429, 100s);
  fail(come("b"), 503, 98s);
  Request& a = come("a");
  Request& b = come("b");
  pass(98s);
  EXPECT_TRUE(a.held) << "the later of both holds";
  EXPECT_TRUE(b.sent);
  pass(2s);
  EXPECT_TRUE(a.held) << "behind the probe of all";
  end(b);
  EXPECT_TRUE(a.sent);
}

TEST_F(Gate, TwoProbesOfAProjectAndOfAllDoNotWaitForEachOther) {
  fail(come("a"), 429);       // 15 s
  fail(come("b"), 503, 15s);  // the same
  for (int i = 0; i < 5; ++i) come("a");
  for (int i = 0; i < 5; ++i) come("b");
  pass(15s);
  for (int round = 0; round < 10; ++round) {
    const auto probe = std::ranges::find_if(
        requests_.begin() + 2, requests_.end(),
        [](const auto& one) { return one->sent && one->sent_at != SteadyTime{}; });
    ASSERT_NE(probe, requests_.end()) << round;
    EXPECT_EQ(sent(), 3 + round);
    (*probe)->sent_at = {};
    end(**probe);
  }
  EXPECT_EQ(sent(), 12);
}

TEST_F(Gate, ASuccessSeenElsewhereFreesAll) {
  hold(3);
  gate_.forget({"a", 429});
  settle();
  EXPECT_EQ(sent(), 4);
}

TEST_F(Gate, AFailureSeenElsewhereHoldsToo) {
  gate_.learn({"a", 429}, {2, now_.wall - 1s, now_.wall + 9s}, now_);
  Request& held = come("a");
  EXPECT_TRUE(held.held);
  EXPECT_TRUE(come("b").sent);
  gate_.learn({"a", 429}, {3, now_.wall, now_.wall + 20s}, now_);
  pass(9s);
  EXPECT_TRUE(held.held) << "the later holds";
  pass(11s);
  EXPECT_TRUE(held.sent);
}

TEST_F(Gate, WhoeverIsPushedOutOfMemoryHoldsNobody) {
  fail(come("a"), 429, 1s);
  Request& held = come("a");
  for (std::size_t i = 0; i < FailureMemory::kMostProjects; ++i) {
    Cooldown::Visitor visitor;
    const std::string project = "p" + std::to_string(i);
    visitor.project = project;
    gate_.failed(visitor, {429, project, now_.steady, 100s, 0}, now_);
  }
  settle();
  EXPECT_TRUE(held.sent);
  EXPECT_LE(gate_.view(now_.steady).size(), FailureMemory::kMostProjects);
}

TEST_F(Gate, AProjectThatNeverComesAgainIsForgottenAllTheSame) {
  fail(come("a"));
  pass(15s + 600s);
  EXPECT_TRUE(come("b").sent);
  EXPECT_FALSE(gate_.find({"a", 429}));
}

TEST_F(Gate, ADrainRefusesThoseWhoAreHeldAndNobodyElse) {
  hold(3);
  gate_.drain();
  settle();
  for (std::size_t i = 1; i <= 3; ++i) EXPECT_TRUE(request(i).refused);
  EXPECT_TRUE(come("a").refused);
  EXPECT_TRUE(come("b").sent);
}

TEST_F(Gate, ShowsWhomItHolds) {
  hold(3);
  pass(5s);
  const auto views = gate_.view(now_.steady);
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views[0].name.project, "a");
  EXPECT_EQ(views[0].record.failures, 1);
  EXPECT_EQ(views[0].left, 10s);
  EXPECT_EQ(views[0].waiting, 3u);
}

}  // namespace
}  // namespace weir
