// What an upstream that always fails gets to bear: retries cost it no more than the budget says,
// and never more attempts than the limit.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

using Seconds = std::chrono::duration<double>;

std::string retrying(int attempts) {
  return "service_config: {methodConfig: [{name: [{}], retryPolicy: {maxAttempts: " +
         std::to_string(attempts) +
         ", initialBackoff: 0.001s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: "
         "[UNAVAILABLE]}}]}";
}

// Clients that each ask again as soon as they were answered, while there is more to ask for.
void ask_while(const WeirdProcess& weird, const std::function<bool()>& more) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&weird, &more] {
      RawClient client(weird.port());
      while (more()) client.get("/x");
    });
  }
  for (std::thread& thread : threads) thread.join();
}
void ask(const WeirdProcess& weird, int times) {
  std::atomic<int> left = times;
  ask_while(weird, [&left] { return left-- > 0; });
}
void ask_for(const WeirdProcess& weird, Span duration) {
  const Instant until = Instant::clock::now() + duration;
  ask_while(weird, [until] { return Instant::clock::now() < until; });
}

struct Attempts {
  double first = 0, retries = 0;
};
Attempts attempts_since(const FakeUpstream& upstream, Instant from) {
  Attempts attempts;
  for (const Received& request : upstream.requests()) {
    if (request.arrived < from) continue;
    request.fields.has("grpc-previous-rpc-attempts") ? ++attempts.retries : ++attempts.first;
  }
  return attempts;
}

TEST(Amplification, RetriesAreAFifthOfFirstTriesAndTenPerSecondOfThePhaseAndTheTtlBeforeIt) {
  std::atomic<bool> failing = false;
  FakeUpstream upstream(
      serve([&](const Received&) { return failing ? answer(503, "") : answer(200, ""); }));
  WeirdProcess weird({.servers = {upstream.url()}, .upstream = retrying(3)});
  constexpr int kBefore = 400, kFirstTries = 800;
  ask(weird, kBefore);
  failing = true;
  const Instant from = Instant::clock::now();
  ask(weird, kFirstTries);
  const Seconds phase = Instant::clock::now() - from;
  const Attempts attempts = attempts_since(upstream, from);
  ASSERT_EQ(attempts.first, kFirstTries);
  constexpr double kTtl = 10, kShare = 0.2 * (kBefore + kFirstTries);
  EXPECT_LE(attempts.retries, kShare + 10 * (phase.count() + kTtl));
  EXPECT_GE(attempts.retries, 0.2 * kFirstTries) << "it is spent";
  EXPECT_GT(weird.metric("weir_retry_refused_total", {{"reason", "budget"}}), 0);
}

TEST(Amplification, WithoutAReserveAttemptsAreAtMostAFifthMoreThanFirstTries) {
  FakeUpstream upstream(serve(answer(503, "")));
  WeirdProcess weird({.servers = {upstream.url()},
                      .upstream = retrying(3) + "\nretry_budget: {min_per_second: 0}"});
  ask(weird, 1000);
  const Attempts attempts = attempts_since(upstream, Instant{});
  const double amplification = (attempts.first + attempts.retries) / attempts.first;
  EXPECT_LE(amplification, 1.2) << attempts.first;
  EXPECT_GE(amplification, 1.19) << attempts.first;
}

// Asked without end, an upstream gets exactly the limit in each window, whatever the policy allows.
TEST(Amplification, NoAttemptIsSentWithoutAUnit) {
  struct Case {
    explicit Case(int attempts)
        : weird({.servers = {upstream.url()},
                 .upstream = retrying(attempts) + "\nretry_budget: {percent: 100000}",
                 .default_rule = "{limit: 10, window: 2s, resource: all}"}) {}
    FakeUpstream upstream{serve(answer(503, ""))};
    WeirdProcess weird;
  };
  Case two(2), five(5);
  wait_for_window(2s);
  const long first = window_of(Instant::clock::now(), 2s);
  std::thread beside([&] { ask_for(two.weird, 4s); });
  ask_for(five.weird, 4s);
  beside.join();
  for (const Case* tested : {&two, &five}) {
    auto arrivals = arrivals_by_window(tested->upstream, "", 2s);
    EXPECT_EQ(arrivals[first], 10);
    EXPECT_EQ(arrivals[first + 1], 10);
    for (const auto& [window, count] : arrivals) EXPECT_LE(count, 10) << window - first;
    EXPECT_GT(attempts_since(tested->upstream, Instant{}).retries, 0);
    EXPECT_GT(tested->weird.metric("weir_retry_refused_total", {{"reason", "unit"}}), 0);
  }
}

}  // namespace
}  // namespace weir::test
