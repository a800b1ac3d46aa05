#include "coordination/books.h"

#include <algorithm>

namespace weir {

bool Books::knows(const std::string& key) const {
  const auto has = [&key](const Claim& claim) {
    return std::find(claim.keys.begin(), claim.keys.end(), key) != claim.keys.end();
  };
  return (pending && std::any_of(pending->claims.begin(), pending->claims.end(), has)) ||
         left.contains(key) || std::any_of(held.begin(), held.end(), [&has](const auto& claim) {
           return has(claim.second);
         });
}

std::int64_t Books::in_use() const {
  std::int64_t units = 0;
  for (const auto& [number, claim] : held) units += claim.units();
  for (const Return& part : returns) units -= part.units;
  return units;
}

std::vector<Claim> Books::take_ended(std::int64_t units, std::size_t max_keys,
                                     const std::shared_ptr<LeaseSlot>& lease) {
  std::vector<Claim> ended;
  std::erase_if(returns, [&](const Return& part) {
    const auto found = held.find(part.claim);
    if (found == held.end()) return true;
    const Claim& claim = found->second;
    if (part.why != Return::Why::ended || part.units != claim.units() || claim.keys.empty()) {
      return false;
    }
    if (claim.lease == lease) return false;  // what became of it could not be told
    if (units <= 0 || claim.keys.size() > max_keys) return false;
    units -= part.units;
    max_keys -= claim.keys.size();
    ended.push_back(std::move(found->second));
    held.erase(found);
    return true;
  });
  return ended;
}

std::int64_t Books::unrecorded() const {
  std::int64_t units = 0;
  for (const auto& [number, claim] : held) units += claim.unrecorded;
  return units;
}

void Books::put_back(const Return& part) {
  const auto claim = held.find(part.claim);
  if (claim == held.end()) return;
  if (claim->second.unrecorded > 0) {
    claim->second.unrecorded -= part.units;
    return;
  }
  if (part.why == Return::Why::ended) alone = false;  // it is offered to others
  // Together with what else of that claim goes back: one key takes one transaction, however many
  // units of it come back one by one.
  const auto same = std::find_if(returns.begin(), returns.end(), [&part](const Return& other) {
    return other.claim == part.claim && other.why == part.why;
  });
  if (same == returns.end()) return returns.push_back(part);
  same->units += part.units;
}

}  // namespace weir
