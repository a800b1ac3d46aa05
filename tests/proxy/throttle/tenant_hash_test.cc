#include "proxy/throttle/tenant_hash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/proxy/throttle/scenario.h"

namespace weir::test {
namespace {

std::string tenant(int i) { return "tenant-" + std::to_string(i); }

double chi_square(int keys, int size, int probes) {
  SeededRandom random(42);
  const TenantHash hash(random);
  std::vector<double> counts(static_cast<std::size_t>(size));
  for (int i = 0; i < keys; ++i) {
    for (const auto place : distinct_places(hash(tenant(i)), probes, size)) {
      EXPECT_LT(place, static_cast<std::uint32_t>(size));
      ++counts[place];
    }
  }
  const double expected = static_cast<double>(keys) * probes / size;
  double sum = 0;
  for (const double count : counts) sum += (count - expected) * (count - expected) / expected;
  EXPECT_GT(counts.front(), 0) << "the first place is one of them";
  return sum;
}

TEST(TenantHash, IsSipHash) {  // the vectors of its reference: key 00 … 0f, text 00 01 02 …
  const HashKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  for (char i = 0; i < 15; ++i) text.push_back(i);
  EXPECT_EQ(siphash(key, ""), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(siphash(key, text.substr(0, 1)), 0x74f839c593dc67fdu);
  EXPECT_EQ(siphash(key, text.substr(0, 8)), 0x93f5f5799a932462u);
  EXPECT_EQ(siphash(key, text), 0xa129ca6149be45e5u);
}

TEST(TenantHash, SpreadsTenantsEvenly) {  // F-7
  EXPECT_LT(chi_square(10'000, 100, 1), 160);
  EXPECT_LT(chi_square(10'000, 33, 1), 70);
  EXPECT_LT(chi_square(10'000, 100, 3), 160);
}

TEST(TenantHash, ThreeProbesAreDifferentAndSeldomThoseOfAnother) {  // F-7
  SeededRandom random(1);
  const TenantHash hash(random);
  std::map<std::set<int>, int> triples;
  for (int i = 0; i < 1000; ++i) {
    const Places places = distinct_places(hash(tenant(i)), 3, 30);
    const std::set<int> triple(places.begin(), places.end());
    EXPECT_EQ(triple.size(), 3u);
    EXPECT_LE(++triples[triple], 5);
  }
}

TEST(TenantHash, AsManyProbesAsPlacesAreAllPlaces) {
  for (std::uint64_t hash = 0; hash < 100; ++hash) {
    const Places places = distinct_places(hash, 8, 8);
    EXPECT_EQ(std::set<int>(places.begin(), places.end()).size(), 8u);
  }
}

TEST(TenantHash, AnotherSecretOrTurnSpreadsTenantsAnew) {
  SeededRandom random(1), another(2);
  TenantHash hash(random);
  EXPECT_NE(hash("tenant"), TenantHash(another)("tenant"));
  const auto before = hash("tenant");
  hash.turn();
  EXPECT_NE(hash("tenant"), before);
}

// Of so many tries with fresh secrets, in how many a tenant shares its bucket with another.
double collisions(int tenants, int size) {
  constexpr int kTries = 100'000;
  SeededRandom random(5);
  TenantHash hash(random);
  int shared = 0;
  for (int i = 0; i < kTries; ++i) {
    hash.turn();
    const auto mine = *distinct_places(hash("mine"), 1, size).begin();
    bool meets = false;
    for (int other = 1; other < tenants && !meets; ++other) {
      meets = *distinct_places(hash(tenant(other)), 1, size).begin() == mine;
    }
    shared += meets;
  }
  return shared / static_cast<double>(kTries);
}

TEST(TenantHash, TenantsShareABucketAsOftenAsReckoned) {  // F-14
  struct Case {
    int tenants, size;
    double share;
  };
  for (const Case& each : {Case{2, 17, 0.059}, Case{4, 17, 0.166}, Case{10, 17, 0.42},
                           Case{17, 17, 0.62}, Case{100, 17, 0.998}, Case{128, 1024, 0.117}}) {
    EXPECT_NEAR(collisions(each.tenants, each.size), each.share, 0.01) << each.tenants;
  }
}

// How often every one of a tenant's bins is also one of some heavy tenant.
double misjudged(int bins, int levels, int heavy) {
  constexpr int kTries = 100'000;
  SeededRandom random(9);
  TenantHash hash(random);
  int hit = 0;
  for (int i = 0; i < kTries; ++i) {
    hash.turn();
    std::set<std::uint32_t> taken;
    for (int other = 0; other < heavy; ++other) {
      for (const auto at : places_by_level(hash(tenant(other)), levels, bins)) taken.insert(at);
    }
    bool all = true;
    for (const auto at : places_by_level(hash("mine"), levels, bins)) all = all && taken.count(at);
    hit += all;
  }
  return hit / static_cast<double>(kTries);
}

TEST(TenantHash, ATenantIsTakenForAHeavyOneAsOftenAsReckoned) {  // F-15
  struct Case {
    int bins, levels, heavy;
    double share;
  };
  for (const Case& each : {Case{23, 2, 1, 0.0019}, Case{23, 2, 5, 0.040}, Case{23, 2, 10, 0.129},
                           Case{16, 8, 10, 0.0026}, Case{16, 8, 20, 0.076}, Case{17, 3, 3, 0.0046},
                           Case{17, 3, 10, 0.094}}) {
    const double tolerance = 5 * std::sqrt(each.share / 100'000) + 0.0006;  // and the rounding
    EXPECT_NEAR(misjudged(each.bins, each.levels, each.heavy), each.share, tolerance)
        << each.bins << " " << each.levels << " " << each.heavy;
  }
}

}  // namespace
}  // namespace weir::test
