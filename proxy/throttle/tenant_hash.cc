#include "proxy/throttle/tenant_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weir {
namespace {

struct SipState {
  std::uint64_t a, b, c, d;

  void round() {
    a += b;
    c += d;
    b = std::rotl(b, 13) ^ a;
    d = std::rotl(d, 16) ^ c;
    a = std::rotl(a, 32);
    c += b;
    a += d;
    b = std::rotl(b, 17) ^ c;
    d = std::rotl(d, 21) ^ a;
    c = std::rotl(c, 32);
  }
  void take(std::uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  }
};

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

// In [0, size).
std::uint32_t below(std::uint64_t random, int size) {
  return static_cast<std::uint32_t>(((random >> 32) * static_cast<std::uint64_t>(size)) >> 32);
}

}  // namespace

std::uint64_t siphash(const HashKey& key, std::string_view text) {
  SipState state{key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d,
                 key.low ^ 0x6c7967656e657261, key.high ^ 0x7465646279746573};
  const auto length = static_cast<std::uint64_t>(text.size());
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), 8);
    state.take(word);
  }
  std::uint64_t last = 0;
  if (!text.empty()) std::memcpy(&last, text.data(), text.size());
  state.take(last | (length << 56));
  state.c ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

std::uint64_t scatter(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

// Floyd's sampling: each step adds one that is not there yet, and no step is repeated.
Places distinct_places(std::uint64_t hash, int count, int size) {
  Places places;
  if (count == 1) {
    places.at[places.count++] = below(hash, size);
    return places;
  }
  for (int last = size - count; last < size; ++last) {
    hash = scatter(hash);
    const std::uint32_t drawn = below(hash, last + 1);
    const bool taken = std::find(places.begin(), places.end(), drawn) != places.end();
    places.at[places.count++] = taken ? static_cast<std::uint32_t>(last) : drawn;
  }
  return places;
}

Places places_by_level(std::uint64_t hash, int levels, int size) {
  Places places;
  for (int level = 0; level < levels; ++level) {
    hash = scatter(hash);
    places.at[places.count++] = static_cast<std::uint32_t>(level * size + below(hash, size));
  }
  return places;
}

TenantHash::TenantHash(Random& random) : secret_{random.next(), random.next()}, key_{secret_} {
  turn();
}

void TenantHash::turn() {
  const auto draw = [this] {
    ++drawn_;
    return siphash(secret_, {reinterpret_cast<const char*>(&drawn_), sizeof drawn_});
  };
  const std::uint64_t low = draw();
  key_ = {low, draw()};
}

double TenantHash::fraction() {
  ++drawn_;
  return static_cast<double>(scatter(secret_.low ^ drawn_) >> 11) * 0x1.0p-53;
}

}  // namespace weir
