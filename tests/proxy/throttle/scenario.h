#pragma once

// A throttle between clients that send at constant rates and a server that serves at a rate which
// changes with time, all in virtual time. One seed decides everything.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "coordination/base/random.h"
#include "proxy/throttle/fair_throttle.h"

namespace weir::test {

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override { return scatter(state_++); }
  double fraction() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

inline SteadyTime at(double seconds) {
  return SteadyTime{} + std::chrono::hours{1} +
         std::chrono::nanoseconds{static_cast<std::int64_t>(std::llround(seconds * 1e9))};
}

struct Client {
  std::string tenant;
  double rate;  // requests per second
};

struct Totals {
  std::vector<double> good;  // by client
  double offered = 0, throttled = 0;

  double sum_good() const {
    double sum = 0;
    for (const double one : good) sum += one;
    return sum;
  }
};

// Serves so many a second, with up to a second's worth in store; what is beyond that is overload.
class Server {
 public:
  bool serve(double rate, double now) {
    tokens_.refill(rate, rate, at(now));
    return tokens_.take();
  }

 private:
  TokenBucket tokens_;
};

struct Phase {
  double from, until;  // seconds that are counted
};

// Behind each attempt of a request (1: the first): seconds until the next one, if there is one.
using Again = std::function<std::optional<double>(int attempt, bool served)>;

// Runs from 0 to the end of the last phase; a total for each phase.
inline std::vector<Totals> run_scenario(Throttle& throttle, const std::vector<Client>& clients,
                                        const std::function<double(double)>& server_rate,
                                        const std::vector<Phase>& phases, SeededRandom& random,
                                        const Again& again = nullptr) {
  struct Attempt {
    double at;
    std::size_t client;
    int number;
    auto operator<=>(const Attempt&) const = default;
  };
  std::priority_queue<Attempt, std::vector<Attempt>, std::greater<>> due;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    due.push({random.fraction() / clients[i].rate, i, 1});
  }
  std::vector<Totals> totals(phases.size());
  for (Totals& each : totals) each.good.resize(clients.size());
  Server server;
  for (;;) {
    const auto [now, who, number] = due.top();
    if (now >= phases.back().until) return totals;
    due.pop();
    if (number == 1) due.push({now + 1 / clients[who].rate, who, 1});
    Totals* count = nullptr;
    for (std::size_t i = 0; i < phases.size(); ++i) {
      if (now >= phases[i].from && now < phases[i].until) count = &totals[i];
    }
    Throttle::Ticket ticket = throttle.accept(clients[who].tenant, at(now));
    if (!ticket) {
      if (count) ++count->throttled;
      continue;
    }
    const bool served = server.serve(server_rate(now), now);
    ticket.settle(served ? Load::borne : Load::too_much, at(now));
    if (count) ++count->offered;
    if (count && served) ++count->good[who];
    const auto wait = again ? again(number, served) : std::nullopt;
    if (wait) due.push({now + *wait, who, number + 1});
  }
}

inline double jain(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace weir::test
