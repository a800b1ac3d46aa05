#include "proxy/throttle/sfb.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <queue>

#include "tests/proxy/throttle/scenario.h"

namespace weir::test {
namespace {

constexpr auto kIgnored = Load::unknown;

SfbOptions options_of(double capacity, int bins, int levels) {
  SfbOptions options;
  options.capacity.initial = capacity;
  options.bins = bins;
  options.levels = levels;
  return options;
}

// Requests that take as long each. Every tenant begins them at its own rate; outcomes say nothing,
// so that the capacity stays what it is.
class Requests {
 public:
  Requests(Sfb& sfb, std::vector<Client> clients, double took = 1)
      : sfb_(sfb), clients_(std::move(clients)), took_(took) {
    SeededRandom random(1);
    for (const Client& client : clients_) next_.push_back(random.fraction() / client.rate);
    good.resize(clients_.size());
    asked.resize(clients_.size());
  }

  void run_until(double end) {
    for (;;) {
      const auto who =
          static_cast<std::size_t>(std::min_element(next_.begin(), next_.end()) - next_.begin());
      const double now = next_[who];
      if (now >= end) return;
      while (!under_way_.empty() && under_way_.front().first <= now) end_one();
      next_[who] += 1 / clients_[who].rate;
      ++asked[who];
      auto ticket = sfb_.accept(clients_[who].tenant, at(now));
      if (!ticket) continue;
      ++good[who];
      under_way_.emplace(now + took_, std::move(ticket));
    }
  }
  void end_all() {
    while (!under_way_.empty()) end_one();
  }
  void set_rate(std::size_t who, double rate) { clients_[who].rate = rate; }
  std::size_t under_way() const { return under_way_.size(); }
  void reset() {
    std::fill(good.begin(), good.end(), 0);
    std::fill(asked.begin(), asked.end(), 0);
  }

  std::vector<double> good, asked;

 private:
  void end_one() {
    under_way_.front().second.settle(kIgnored, at(under_way_.front().first));
    under_way_.pop();
  }

  Sfb& sfb_;
  std::vector<Client> clients_;
  const double took_;
  std::vector<double> next_;
  std::queue<std::pair<double, Throttle::Ticket>> under_way_;
};

// 100 tenants with a quarter of a request under way each, and one with 500 times as much; the
// capacity is half of it together. With 50 times as much the hundred alone would be beyond the
// capacity, and nobody could keep them from losing.
constexpr double kLight = 0.25, kHeavy = 125, kCapacity = 75;
std::vector<Client> tenants() {
  std::vector<Client> clients{{"heavy", kHeavy}};
  for (int i = 0; i < 100; ++i) clients.push_back({"light" + std::to_string(i), kLight});
  return clients;
}

TEST(Sfb, AHeavyTenantEndsInThePenaltyBoxAndOthersLoseNothing) {  // F-16
  SeededRandom random(1);
  SfbOptions options = options_of(kCapacity, 23, 2);
  options.rehash = std::chrono::hours{1};
  Sfb sfb(options, random, at(0));
  Requests load(sfb, tenants());
  load.run_until(60);
  EXPECT_EQ(sfb.probability("heavy"), 1);
  load.reset();
  load.run_until(160);
  std::printf("F-16: the heavy one gets %.1f/s of %.0f/s\n", load.good[0] / 100, kHeavy);
  EXPECT_LE(load.good[0] / 100, options.penalty_rate * 1.1);
  EXPECT_GE(load.good[0] / 100, options.penalty_rate * 0.9);
  double good = 0, asked = 0;
  for (std::size_t i = 1; i < load.good.size(); ++i) {
    if (sfb.probability("light" + std::to_string(i - 1)) >= 1) continue;  // shares both bins
    good += load.good[i];
    asked += load.asked[i];
  }
  EXPECT_GE(good, 0.95 * asked);
  EXPECT_GE(asked, 0.95 * 100 * 100 * kLight) << "next to nobody shares both";
}

TEST(Sfb, ASwapUnderLoadLosesNoRequestAndFreesNobodyFromTheBox) {  // F-17
  SeededRandom random(2);
  SfbOptions options = options_of(kCapacity, 23, 2);
  Sfb sfb(options, random, at(0));
  Requests load(sfb, tenants());
  load.run_until(59);
  ASSERT_EQ(sfb.probability("heavy"), 1);
  for (double now = 59; now < 200; now += 0.25) {
    load.run_until(now);
    for (const Sfb::Level& level : sfb.under_way()) {
      EXPECT_GE(level.least, 0) << "at " << now;
      EXPECT_EQ(level.under_way, static_cast<long>(load.under_way())) << "at " << now;
    }
    EXPECT_GE(sfb.probability("heavy"), 0.99) << "at " << now;
  }
  load.end_all();
  for (const Sfb::Level& level : sfb.under_way()) {
    EXPECT_EQ(level.under_way, 0);
    EXPECT_EQ(level.most, 0);
  }
}

TEST(Sfb, WhenTheCapacityGrowsATenantLeavesTheBoxAndIsServed) {
  SeededRandom random(4);
  SfbOptions options = options_of(kCapacity, 23, 2);
  options.rehash = std::chrono::hours{1};
  Sfb sfb(options, random, at(0));
  Requests load(sfb, tenants());
  load.run_until(60);
  ASSERT_EQ(sfb.probability("heavy"), 1);
  sfb.start_at(100 * kCapacity);
  load.run_until(70);
  EXPECT_LT(sfb.probability("heavy"), 0.95);
  load.run_until(200);
  EXPECT_EQ(sfb.probability("heavy"), 0);
  load.reset();
  load.run_until(220);
  EXPECT_EQ(load.good[0], load.asked[0]);
}

TEST(Sfb, WhenItsLoadEndsATenantIsOutOfTheBoxBehindTheNextSwap) {
  SeededRandom random(5);
  Sfb sfb(options_of(kCapacity, 23, 2), random, at(0));
  Requests load(sfb, tenants());
  load.run_until(50);
  ASSERT_EQ(sfb.probability("heavy"), 1);
  load.set_rate(0, 2);  // of which one or two are always under way
  for (double now = 61; now < 300; ++now) {
    load.run_until(now);
    EXPECT_LT(sfb.probability("heavy"), 0.1) << "at " << now;
  }
}

TEST(Sfb, WhoeverSharesAllBinsWithAHeavyTenantIsFreeBehindTheNextSwap) {
  SeededRandom random(6);
  Sfb sfb(options_of(kCapacity, 23, 2), random, at(0));
  Requests heavy(sfb, tenants());
  heavy.run_until(40);
  ASSERT_EQ(sfb.probability("heavy"), 1);
  std::string innocent = "innocent";
  while (sfb.probability(innocent) < 1) innocent += "'";
  std::vector<Throttle::Ticket> last;  // its requests take a second too
  for (double now = 40; now < 65; now += 0.4) {
    heavy.run_until(now);
    auto ticket = sfb.accept(innocent, at(now));
    if (last.size() > 1) last.erase(last.begin());
    if (ticket) last.push_back(std::move(ticket));
  }
  EXPECT_LT(sfb.probability(innocent), 0.1);
  EXPECT_GE(sfb.probability("heavy"), 0.99);
}

TEST(Sfb, SuccessesOfTenantsThatNobodyHoldsBackTeachNothing) {
  SeededRandom random(7);
  SfbOptions options = options_of(kCapacity, 23, 2);
  options.rehash = std::chrono::hours{1};
  Sfb sfb(options, random, at(0));
  Requests load(sfb, tenants());
  load.run_until(60);
  ASSERT_EQ(sfb.probability("heavy"), 1);
  std::string free = "free";
  while (sfb.probability(free) > 0) free += "'";
  for (int i = 0; i < 100; ++i) sfb.accept(free, at(60)).settle(Load::borne, at(60));
  EXPECT_EQ(sfb.facts(at(60)).rate, kCapacity);
}

TEST(Sfb, EveryLevelAddsUpToWhatIsUnderWay) {
  SeededRandom random(3);
  SfbOptions options = options_of(1000, 16, 4);
  options.rehash = std::chrono::seconds{20};
  Sfb sfb(options, random, at(0));
  Requests load(sfb, tenants(), 15);
  for (double now = 1; now < 100; now += 0.5) {
    load.run_until(now);
    for (const Sfb::Level& level : sfb.under_way()) {
      EXPECT_EQ(level.under_way, static_cast<long>(load.under_way())) << "at " << now;
    }
  }
  EXPECT_GT(load.under_way(), 50u);
}

TEST(Sfb, ABinChangesOnceWithinItsHoldTime) {
  SeededRandom random(1);
  Sfb sfb(options_of(1, 1, 1), random, at(0));
  auto held = sfb.accept("tenant", at(0));
  auto held_too = sfb.accept("tenant", at(0));
  EXPECT_EQ(sfb.probability("tenant"), 0) << "one under way is below 1.5";
  for (double now = 0.2; now < 0.29; now += 0.01) (void)sfb.accept("tenant", at(now));
  EXPECT_DOUBLE_EQ(sfb.probability("tenant"), 0.005);
  (void)sfb.accept("tenant", at(0.31));
  EXPECT_DOUBLE_EQ(sfb.probability("tenant"), 0.010);
  held.settle(kIgnored, at(0.32));
  held_too.settle(kIgnored, at(0.32));
  (void)sfb.accept("tenant", at(0.45));
  EXPECT_DOUBLE_EQ(sfb.probability("tenant"), 0.009) << "nothing was under way";
}

TEST(Sfb, DroppedTicketsLeaveTheirBinsAndAreCounted) {
  SeededRandom random(1);
  Sfb sfb(options_of(100, 16, 3), random, at(0));
  {
    const auto ticket = sfb.accept("tenant", at(0));
  }
  EXPECT_EQ(sfb.under_way().front().under_way, 0);
  EXPECT_EQ(sfb.facts(at(0)).dropped, 1u);
}

TEST(Sfb, OverloadLowersTheCapacityAndSuccessRaisesItWhileItLimits) {
  SeededRandom random(1);
  Sfb sfb(options_of(100, 1, 1), random, at(0));
  sfb.accept("tenant", at(0)).settle(Load::too_much, at(0));
  EXPECT_DOUBLE_EQ(sfb.facts(at(0)).rate, 70);
  sfb.accept("tenant", at(1)).settle(Load::borne, at(1));
  EXPECT_DOUBLE_EQ(sfb.facts(at(1)).rate, 70) << "nobody was held back";
  std::vector<Throttle::Ticket> held;
  for (int i = 0; i < 110; ++i) held.push_back(sfb.accept("tenant", at(2 + i * 0.001)));
  auto ticket = sfb.accept("tenant", at(2.3));
  while (!ticket) ticket = sfb.accept("tenant", at(2.3));
  ticket.settle(Load::borne, at(2.3));
  EXPECT_DOUBLE_EQ(sfb.facts(at(2.3)).rate, 71);
}

}  // namespace
}  // namespace weir::test
