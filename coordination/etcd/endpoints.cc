#include "coordination/etcd/endpoints.h"

#include <algorithm>

namespace weir::etcd {

std::optional<std::size_t> Endpoints::choose(SteadyTime now) const {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::size_t member = (preferred_ + i) % members_.size();
    if (members_[member].not_before <= now) return member;
  }
  return std::nullopt;
}

SteadyTime Endpoints::next_try() const {
  return std::ranges::min(members_, {}, &Member::not_before).not_before;
}

void Endpoints::answered(std::size_t member, SteadyTime now) {
  members_[member] = {.failures = 0, .not_before = SteadyTime::min(), .answered = now};
  preferred_ = member;
}

bool Endpoints::timed_out(std::size_t member, SteadyTime sent, SteadyTime now,
                          std::uint64_t random) {
  if (members_[member].answered >= sent) return false;
  failed(member, now, random);
  return true;
}

void Endpoints::failed(std::size_t member, SteadyTime now, std::uint64_t random) {
  Member& left = members_[member];
  const auto delay = std::min(kFirstDelay * (1 << std::min(left.failures, 10)), kLongestDelay);
  const auto half = static_cast<std::uint64_t>(delay.count() / 2);
  left.not_before = now + delay / 2 + std::chrono::milliseconds{random % (half + 1)};
  ++left.failures;
  preferred_ = (member + 1) % members_.size();
}

void Endpoints::refused(std::size_t member, SteadyTime now) {
  members_[member].not_before = now + kRefusedDelay;
  preferred_ = (member + 1) % members_.size();
}

}  // namespace weir::etcd
