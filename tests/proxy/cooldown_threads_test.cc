// A cooldown's gate under eight threads: whoever is held is woken once, or leaves, or goes; nobody
// is forgotten. Meant for the tsan preset as well.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "proxy/cooldown.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Kind = Cooldown::Verdict::Kind;

constexpr int kThreads = 8, kEach = 2'000;

// A millisecond later each time that anybody looks.
class SharedClock {
 public:
  Instant now() {
    const auto past = std::chrono::milliseconds{++ticks_};
    return {SteadyTime{1h} + past, WallTime{1'800'000'000s} + past};
  }

 private:
  std::atomic<int> ticks_{0};
};

struct Request {
  explicit Request(const std::string& name) : project(name) {
    visitor.project = project;
    visitor.who = this;
    visitor.wake = [](void* who) { ++static_cast<Request*>(who)->wakes; };
  }
  const std::string project;
  std::atomic<int> wakes{0};
  Cooldown::Visitor visitor;
};

// Asks until it may go. False: it has left, or was sent away.
bool enter(Cooldown& gate, SharedClock& clock, Request& request, bool impatient) {
  auto verdict = gate.ask(request.visitor, clock.now().steady);
  while (verdict.kind == Kind::held) {
    if (impatient && gate.leave(request.visitor)) {
      EXPECT_EQ(request.wakes, 0);
      return false;
    }
    const auto again = gate.ask_again(request.visitor, clock.now().steady);
    if (again) {
      verdict = *again;
      continue;
    }
    while (request.wakes == 0) std::this_thread::yield();
    EXPECT_EQ(request.wakes.exchange(0), 1) << "once";
    verdict = gate.ask(request.visitor, clock.now().steady);
  }
  return verdict.kind == Kind::go;
}

TEST(CooldownThreads, WhoeverIsHeldIsWokenOnceAndNobodyIsForgotten) {
  CooldownOptions options;
  options.on_429 = {5ms, 20ms, CooldownOptions::Scope::project};
  options.on_503 = {5ms, 20ms, CooldownOptions::Scope::global};
  SharedClock clock;
  std::atomic<int> changes{0};
  Cooldown gate(options, [&] { ++changes; });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) {
        Request request("p" + std::to_string((thread + i) % 3));
        if (enter(gate, clock, request, i % 5 == 0)) {
          const Instant sent = clock.now();
          if (i % 3 == 0) {
            gate.failed(request.visitor,
                        {i % 2 ? 429 : 503, request.project, sent.steady, 1ms, 0.5}, clock.now());
          } else if (i % 3 == 1) {
            gate.succeeded(request.visitor, sent.steady, clock.now());
          } else {
            gate.settle(request.visitor, clock.now().steady);
          }
        }
        // What the coordination thread and the admin address do meanwhile.
        const Instant now = clock.now();
        const FailureMemory::Name name{request.project, 429};
        if (i % 7 == thread % 7) gate.learn(name, {1, now.wall, now.wall + 10ms}, now);
        if (i % 11 == thread) gate.forget(name);
        if (i % 13 == thread) (void)gate.take_changes();
        if (i % 17 == thread) (void)gate.view(now.steady);
        (void)gate.foresee(request.project, now.steady);
        (void)gate.not_before(request.project, now.steady);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(changes, 0);
  for (const CooldownView& view : gate.view(clock.now().steady)) EXPECT_EQ(view.waiting, 0u);
  Request last("p0");
  EXPECT_TRUE(enter(gate, clock, last, false));
}

}  // namespace
}  // namespace weir
