#pragma once

// Where a tenant lands among buckets, in a way that it can neither foresee nor choose: SipHash-2-4
// under a key that is drawn at random, never shown, and replaced with each turn. Pure values; not
// thread-safe where it changes.

#include <array>
#include <cstdint>
#include <string_view>

#include "coordination/base/random.h"

namespace weir {

struct HashKey {
  std::uint64_t low, high;
};
std::uint64_t siphash(const HashKey& key, std::string_view text);

// Spreads the bits of a number over all of it; a sequence of these passes for random.
std::uint64_t scatter(std::uint64_t number);

inline constexpr int kMaxProbes = 8;

// Up to kMaxProbes places. Small enough to be copied into every ticket.
struct Places {
  std::array<std::uint32_t, kMaxProbes> at{};
  std::uint8_t count = 0;

  const std::uint32_t* begin() const { return at.data(); }
  const std::uint32_t* end() const { return at.data() + count; }
};

// `count` different ones of `size`, every choice as likely as any other; count <= size <= 65536.
Places distinct_places(std::uint64_t hash, int count, int size);
// One in each of `levels` rows of `size`, numbered through.
Places places_by_level(std::uint64_t hash, int levels, int size);

class TenantHash {
 public:
  explicit TenantHash(Random& random);

  std::uint64_t operator()(std::string_view tenant) const { return siphash(key_, tenant); }
  // A fresh key; what follows has nothing to do with what was before.
  void turn();
  // In [0, 1), another one each time.
  double fraction();

 private:
  HashKey secret_;
  std::uint64_t drawn_ = 0;
  HashKey key_;
};

}  // namespace weir
