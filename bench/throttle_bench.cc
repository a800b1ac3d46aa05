// A throttle alone: accept and settle, as each attempt does; by one thread and by two, with a token
// there and without. And what ten million tenants leave behind. Run and judged by bench/throttle.

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <array>
#include <charconv>
#include <memory>
#include <string_view>
#include <vector>

#include "daemon/system.h"
#include "proxy/throttle/throttle.h"

namespace weir {
namespace {

using Kind = ThrottleOptions::Kind;

ThrottleOptions options_of(Kind kind, double rate) {
  ThrottleOptions options;
  options.kind = kind;
  options.initial_rate = options.ceiling = rate;
  options.floor = rate;
  return options;
}

// Never empty, and never limiting: nobody is denied, and successes are not learned.
constexpr double kPlenty = 1e9;

// One throttle for all threads of a run. Setup and Teardown surround the threads.
SystemClock system_clock;
std::unique_ptr<Throttle> throttle;
std::vector<Throttle::Ticket> held;

template <Kind kind>
void set_up(const benchmark::State&) {
  SystemRandom random;
  throttle = make_throttle(options_of(kind, kPlenty), random, system_clock.steady_now());
}
template <Kind kind>
void set_up_empty(const benchmark::State&) {
  SystemRandom random;
  const SteadyTime now = system_clock.steady_now();
  throttle = make_throttle(options_of(kind, 1e-6), random, now);
  for (int i = 0; i < 2; ++i) throttle->accept("192.0.2.17", now).settle(Load::unknown, now);
}
// Has denied a moment ago, so that successes are learned; from then on there is a token each time.
template <Kind kind>
void set_up_limiting(const benchmark::State&) {
  SystemRandom random;
  ThrottleOptions options = options_of(kind, kPlenty);
  options.burst = std::chrono::milliseconds{0};
  const SteadyTime now = system_clock.steady_now();
  throttle = make_throttle(options, random, now);
  for (int i = 0; i < 3; ++i) {
    if (auto ticket = throttle->accept("192.0.2.17", now)) ticket.settle(Load::unknown, now);
  }
}
// Full for ten seconds by now, so that about half is denied.
template <>
void set_up_limiting<Kind::sfb>(const benchmark::State&) {
  SystemRandom random;
  const SteadyTime now = system_clock.steady_now();
  const SteadyTime then = now - std::chrono::seconds{10};
  throttle = make_throttle(options_of(Kind::sfb, 1), random, then);
  for (int i = 0; i < 100; ++i) {
    auto ticket = throttle->accept("192.0.2.17", then + i * std::chrono::milliseconds{100});
    if (ticket) held.push_back(std::move(ticket));
  }
}
void tear_down(const benchmark::State&) {
  held.clear();
  throttle.reset();
}

// With the clock that both are asked with, as the proxy reads it.
void accept_and_settle(benchmark::State& state) {
  for (auto _ : state) {
    Throttle::Ticket ticket = throttle->accept("192.0.2.17", system_clock.steady_now());
    if (!ticket) {
      state.SkipWithError("denied");
      return;
    }
    ticket.settle(Load::borne, system_clock.steady_now());
  }
  state.SetItemsProcessed(state.iterations());
}

void at_the_limit(benchmark::State& state) {
  for (auto _ : state) {
    Throttle::Ticket ticket = throttle->accept("192.0.2.17", system_clock.steady_now());
    if (ticket) ticket.settle(Load::borne, system_clock.steady_now());
  }
  state.SetItemsProcessed(state.iterations());
}

void deny(benchmark::State& state) {
  for (auto _ : state) {
    Throttle::Ticket ticket = throttle->accept("192.0.2.17", system_clock.steady_now());
    if (ticket) {
      state.SkipWithError("not denied");
      return;
    }
  }
  state.SetItemsProcessed(state.iterations());
}

// What the heap holds more behind so many requests of a tenant each.
void tenants(benchmark::State& state, Kind kind) {
  SystemRandom random;
  const auto fresh = make_throttle(options_of(kind, kPlenty), random, system_clock.steady_now());
  const auto ask = [&](std::uint64_t number) {
    std::array<char, 24> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    const std::string_view tenant(text.data(), static_cast<std::size_t>(end - text.data()));
    const SteadyTime now = system_clock.steady_now();
    if (Throttle::Ticket ticket = fresh->accept(tenant, now)) ticket.settle(Load::borne, now);
  };
  ask(0);
  std::size_t grown = 0;
  for (auto _ : state) {
    const std::size_t before = mallinfo2().uordblks;
    for (std::int64_t i = 0; i < state.range(0); ++i) ask(static_cast<std::uint64_t>(i));
    grown = mallinfo2().uordblks - before;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["grown_bytes"] = static_cast<double>(grown);
}

template <Kind kind>
void add(const std::string& name) {
  for (const int threads : {1, 2}) {
    benchmark::RegisterBenchmark((name + "/accept_and_settle").c_str(), accept_and_settle)
        ->Setup(set_up<kind>)
        ->Teardown(tear_down)
        ->Threads(threads)
        ->UseRealTime();
  }
  benchmark::RegisterBenchmark((name + "/at_the_limit").c_str(), at_the_limit)
      ->Setup(set_up_limiting<kind>)
      ->Teardown(tear_down)
      ->UseRealTime();
  if constexpr (kind != Kind::sfb) {
    benchmark::RegisterBenchmark((name + "/deny").c_str(), deny)
        ->Setup(set_up_empty<kind>)
        ->Teardown(tear_down)
        ->UseRealTime();
  }
  benchmark::RegisterBenchmark((name + "/tenants").c_str(), tenants, kind)
      ->Arg(10'000'000)
      ->Iterations(1)
      ->Repetitions(1)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  using Kind = weir::ThrottleOptions::Kind;
  weir::add<Kind::aimd>("aimd");
  weir::add<Kind::sfq>("sfq");
  weir::add<Kind::bloom>("bloom");
  weir::add<Kind::sfb>("sfb");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
