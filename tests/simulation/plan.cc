#include "tests/simulation/plan.h"

#include <algorithm>

namespace weir::sim {
namespace {

std::int64_t some_limit(Dice& dice) {
  const double kind = dice.unit();
  if (kind < 0.5) return dice.between(1, 10);
  if (kind < 0.75) return dice.between(11, 128);
  return dice.between(129, 300);
}

// A chance that is often none at all, so that faults are also seen alone.
double some_chance(Dice& dice) {
  static const std::vector<double> chances{0, 0, 0, 0.01, 0.05, 0.2};
  return dice.pick(chances);
}

Duration some_gap(Dice& dice) {
  static const std::vector<int> gaps{0, 0, 5, 15, 40};
  return seconds{dice.pick(gaps)};
}

Rule make_rule(Dice& dice, int index) {
  Rule rule;
  rule.name = "rule" + std::to_string(index);
  rule.limit.units = some_limit(dice);
  rule.limit.window = seconds{dice.chance(0.9) ? dice.between(1, 10) : dice.between(11, 30)};
  static const std::vector<Mode> modes{Mode::started, Mode::sliding, Mode::in_flight,
                                       Mode::until_done};
  rule.limit.mode = dice.pick(modes);
  rule.limit.queue = dice.chance(0.3) ? Queue::fair : Queue::fifo;
  rule.resources = static_cast<int>(dice.between(1, 4));
  rule.tenants = static_cast<int>(dice.between(1, 4));
  rule.impatient = dice.chance(0.3) ? dice.unit() : 0;
  rule.leaves = dice.chance(0.5) ? dice.unit() * 0.4 : 0;
  rule.serving = dice.between(milliseconds{5}, milliseconds{2500});

  // From little use to twice what is allowed, but never so much that a seed takes long.
  const double units = static_cast<double>(rule.limit.units * rule.resources);
  const double per_second = rule.limit.mode == Mode::in_flight
                                ? units / in_seconds(rule.serving)
                                : units / in_seconds(rule.limit.window);
  const double wanted = std::min(per_second * (0.1 + 1.9 * dice.unit()), 12.0);
  rule.between_arrivals = Duration{static_cast<Duration::rep>(1e9 / wanted)};
  if (dice.chance(0.6)) {
    rule.between_bursts = dice.between(seconds{5}, seconds{40});
    rule.burst = static_cast<int>(std::min<double>(units * (0.2 + 1.5 * dice.unit()) + 1, 160));
  }
  return rule;
}

void add_faults(Plan& plan, Dice& dice) {
  plan.messages = {some_chance(dice), some_chance(dice), some_chance(dice),
                   some_chance(dice), some_chance(dice), some_chance(dice)};
  Mishaps& mishaps = plan.mishaps;
  mishaps = {some_gap(dice), some_gap(dice), some_gap(dice), some_gap(dice),
             some_gap(dice), some_gap(dice), some_gap(dice)};
  plan.slow_sends = some_chance(dice);
  plan.skew = dice.chance(0.7) ? dice.between(Duration{0}, seconds{15}) : Duration{0};
}

// leases.h promises for clocks that differ by up to 40 s, and for one process whose own clock is
// set back however far: that of a replica that is alone, and is never started again, by 90 s.
void set_clocks_back(Plan& plan) {
  const bool one_process = plan.replicas == 1 && plan.mishaps.crash == Duration{0};
  plan.back = one_process ? plan.skew + seconds{90} : plan.skew;
}

void make_sole(Plan& plan) {
  plan.sole = plan.embedded = true;
  plan.replicas = 1;
  plan.mishaps.crash = {};
}

}  // namespace

Plan make_plan(std::uint64_t seed, Bug bug) {
  Dice dice(seed * 0x9E3779B97F4A7C15u + 17);
  Plan plan;
  plan.seed = seed;
  plan.replicas = static_cast<int>(dice.chance(0.2) ? 1 : dice.between(2, 5));
  const auto rules = dice.between(1, 3);
  for (int i = 0; i < rules; ++i) plan.rules.push_back(make_rule(dice, i));
  plan.faults = dice.chance(0.85);
  static const std::vector<milliseconds> delays{milliseconds{1}, milliseconds{5}, milliseconds{20},
                                                milliseconds{20}, milliseconds{300}};
  plan.embedded = dice.chance(0.1);
  plan.delay = dice.pick(delays);
  plan.calm_delay = std::min<Duration>(plan.delay, milliseconds{20});
  plan.faults_for = dice.between(seconds{15}, seconds{60});
  plan.calm_for = dice.between(seconds{10}, seconds{40});
  if (dice.chance(0.25)) plan.max_resources = static_cast<std::size_t>(dice.between(1, 3));
  if (dice.chance(0.1)) plan.max_waiting = static_cast<std::size_t>(dice.between(1, 50));
  plan.knows_replicas = dice.chance(0.8);
  if (plan.faults) add_faults(plan, dice);
  const auto changes = dice.chance(0.4) ? dice.between(1, 3) : 0;
  for (int i = 0; i < changes; ++i) {
    plan.limit_changes.emplace_back(dice.between(Duration{0}, plan.faults_for),
                                    static_cast<int>(dice.between(0, rules - 1)));
  }
  if (dice.chance(0.1)) make_sole(plan);
  if (plan.faults) set_clocks_back(plan);
  if (bug == Bug::clocks_far_apart) plan.skew = plan.back = seconds{90};
  return plan;
}

}  // namespace weir::sim
