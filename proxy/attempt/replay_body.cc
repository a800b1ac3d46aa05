#include "proxy/attempt/replay_body.h"

#include <utility>

namespace weir {

bool ReplayRoom::take(std::size_t bytes) {
  if (taken_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kMost) return true;
  give_back(bytes);
  return false;
}

void ReplayBody::append(std::string_view framed) {
  if (!overflowed_ && count(framed.size())) bytes_.append(framed);
}

bool ReplayBody::count(std::size_t bytes) {
  if (taken_ + bytes <= kMost && room_.take(bytes)) {
    taken_ += bytes;
    return true;
  }
  overflowed_ = true;
  room_.give_back(std::exchange(taken_, 0));
  bytes_ = std::string{};
  return false;
}

}  // namespace weir
