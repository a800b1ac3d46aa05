#include "coordination/line.h"

#include <gtest/gtest.h>

#include <deque>

namespace weir {
namespace {

struct Guest : Line::Place {
  explicit Guest(std::string who) : name(std::move(who)) {}
  std::string name;
};

struct LineTest : testing::Test {
  void join(const std::string& name, const std::string& tenant, Queue order) {
    line.push(guests.emplace_back(name), tenant, order);
  }
  Guest& guest(const std::string& name) {
    for (Guest& each : guests) {
      if (each.name == name) return each;
    }
    throw std::out_of_range(name);
  }
  std::string served() {
    std::string names;
    while (Line::Place* place = line.pop()) names += static_cast<Guest*>(place)->name + " ";
    return names;
  }
  std::deque<Guest> guests;
  Line line;
};

TEST_F(LineTest, ServesInTheOrderOfArrivalWhateverTheTenant) {
  join("a1", "a", Queue::fifo);
  join("a2", "a", Queue::fifo);
  join("b1", "b", Queue::fifo);
  EXPECT_EQ(line.size(), 3u);
  EXPECT_EQ(served(), "a1 a2 b1 ");
  EXPECT_TRUE(line.empty());
}

TEST_F(LineTest, AFairOneServesTenantsInTurn) {
  for (const char* name : {"a1", "a2", "a3"}) join(name, "a", Queue::fair);
  join("b1", "b", Queue::fair);
  join("c1", "c", Queue::fair);
  join("c2", "c", Queue::fair);
  EXPECT_EQ(served(), "a1 b1 c1 a2 c2 a3 ");
}

TEST_F(LineTest, KnowsTheFirstOfEachTenant) {
  for (const char* name : {"a1", "a2"}) join(name, "a", Queue::fair);
  join("b1", "b", Queue::fair);
  EXPECT_EQ(line.first_of("a"), &guest("a1"));
  line.remove(guest("a1"));
  line.remove(guest("b1"));
  EXPECT_EQ(line.first_of("a"), &guest("a2"));
  EXPECT_EQ(line.first_of("b"), nullptr);
}

TEST_F(LineTest, OffersToTheFirstOfEachTenantUntilNobodyIsTaken) {
  for (const char* name : {"a1", "a2", "a3"}) join(name, "a", Queue::fair);
  for (const char* name : {"b1", "b2"}) join(name, "b", Queue::fair);
  join("c1", "c", Queue::fair);
  std::string offered;
  const auto offer = [&](const std::string& taken, char stop = 0) {
    offered.clear();
    line.offer([&](Line::Place& place) {
      const std::string& name = static_cast<Guest&>(place).name;
      offered += name + " ";
      if (name.front() == stop) return Line::Judged::stop;
      const bool take = taken.find(name.front()) != std::string::npos;
      return take ? Line::Judged::taken : Line::Judged::stays;
    });
  };
  offer("", 'b');
  EXPECT_EQ(offered, "a1 b1 ");
  offer("b");
  EXPECT_EQ(offered, "a1 b1 c1 b2 ");
  EXPECT_EQ(line.size(), 4u);
  offer("a", 'x');
  EXPECT_EQ(offered, "a1 c1 a2 a3 ");
  EXPECT_EQ(served(), "c1 ");
}

TEST_F(LineTest, WhoseTurnItIsMayBePassedOver) {
  join("a1", "a", Queue::fair);
  join("a2", "a", Queue::fair);
  join("b1", "b", Queue::fair);
  EXPECT_EQ(line.tenants(), 2u);
  EXPECT_EQ(static_cast<Guest*>(line.first())->name, "a1");
  line.pass();
  EXPECT_EQ(static_cast<Guest*>(line.first())->name, "b1");
  EXPECT_EQ(line.size(), 3u);
  EXPECT_EQ(served(), "b1 a1 a2 ");
  line.pass();
  EXPECT_EQ(line.first(), nullptr);
}

TEST_F(LineTest, OneOfASmallTenantIsServedWithinARoundHoweverManyALargeOneHas) {  // F-18
  constexpr std::size_t kSmall = 10;
  for (int i = 0; i < 1000; ++i) join("large", "large", Queue::fair);
  for (std::size_t i = 0; i < kSmall; ++i) join("small", "small" + std::to_string(i), Queue::fair);
  std::size_t small = 0;
  for (std::size_t i = 0; i < kSmall + 1; ++i)
    small += static_cast<Guest*>(line.pop())->name == "small";
  EXPECT_EQ(small, kSmall);
  EXPECT_EQ(line.size(), 999u);
}

TEST_F(LineTest, AFairTenantThatComesBackGoesToTheEndOfTheRound) {
  join("a1", "a", Queue::fair);
  join("b1", "b", Queue::fair);
  join("b2", "b", Queue::fair);
  EXPECT_EQ(static_cast<Guest*>(line.pop())->name, "a1");
  join("a2", "a", Queue::fair);
  EXPECT_EQ(served(), "b1 a2 b2 ");
}

TEST_F(LineTest, WhoLeavesIsSkippedAtEitherEndAndInTheMiddle) {
  for (const char* name : {"1", "2", "3", "4", "5"}) join(name, "t", Queue::fifo);
  for (const char* name : {"1", "3", "5"}) {
    EXPECT_TRUE(guest(name).in_line());
    line.remove(guest(name));
    EXPECT_FALSE(guest(name).in_line());
  }
  EXPECT_EQ(line.size(), 2u);
  EXPECT_EQ(served(), "2 4 ");
}

TEST_F(LineTest, EverybodyMayBeRemovedWhileBeingVisited) {
  for (const char* name : {"a1", "a2"}) join(name, "a", Queue::fair);
  join("b1", "b", Queue::fair);
  int visited = 0;
  line.each([&](Line::Place& place) {
    line.remove(place);
    ++visited;
  });
  EXPECT_EQ(visited, 3);
  EXPECT_TRUE(line.empty());
  EXPECT_EQ(line.pop(), nullptr);
}

}  // namespace
}  // namespace weir
