#include "coordination/books.h"

namespace weir {

std::int64_t Books::unrecorded() const {
  std::int64_t units = 0;
  for (const auto& [number, claim] : held) units += claim.unrecorded;
  return units;
}

void Books::put_back(const Return& part) {
  const auto claim = held.find(part.claim);
  if (claim == held.end()) return;
  if (claim->second.unrecorded == 0) return returns.push_back(part);
  claim->second.unrecorded -= part.units;
}

}  // namespace weir
