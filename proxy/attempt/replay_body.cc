#include "proxy/attempt/replay_body.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir {

bool ReplayRoom::take(std::size_t bytes) {
  if (taken_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kMost) return true;
  give_back(bytes);
  return false;
}

bool ReplayBody::append(std::string_view framed) {
  if (overflowed_ || !count(framed.size())) return false;
  while (!framed.empty()) {
    const std::size_t used = size_ % kBlock;
    if (used == 0) blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
    const std::size_t part = std::min(kBlock - used, framed.size());
    std::memcpy(blocks_.back().get() + used, framed.data(), part);
    framed.remove_prefix(part);
    size_ += part;
  }
  return true;
}

std::string_view ReplayBody::behind(std::size_t bytes) const {
  if (bytes >= size_) return {};
  const std::size_t used = bytes % kBlock;
  return {blocks_[bytes / kBlock].get() + used, std::min(kBlock - used, size_ - bytes)};
}

bool ReplayBody::count(std::size_t bytes) {
  if (taken_ + bytes <= kMost && room_.take(bytes)) {
    taken_ += bytes;
    return true;
  }
  overflowed_ = true;
  room_.give_back(std::exchange(taken_, 0));
  size_ = 0;
  blocks_.clear();
  return false;
}

}  // namespace weir
