#include "daemon/throttles.h"

namespace weir {

std::shared_ptr<UpstreamThrottle> Throttles::configure(const UpstreamOptions& upstream) {
  auto& current = current_[upstream.name];
  auto next = UpstreamThrottle::make(upstream.throttle, current, random_, clock_.steady_now());
  std::erase_if(replaced_, [](const auto& throttle) { return throttle.expired(); });
  if (current && current != next) replaced_.push_back(current);
  return current = std::move(next);
}

UpstreamThrottle* Throttles::find(const std::string& upstream) const {
  const auto found = current_.find(upstream);
  return found == current_.end() ? nullptr : found->second.get();
}

std::map<std::string, ThrottleFacts> Throttles::facts() const {
  std::map<std::string, ThrottleFacts> facts;
  for (const auto& [upstream, throttle] : current_) {
    if (throttle) facts.emplace(upstream, throttle->throttle().facts(clock_.steady_now()));
  }
  return facts;
}

void Throttles::drain() {
  for (const auto& [upstream, throttle] : current_) {
    if (throttle) throttle->line().drain();
  }
  for (const auto& replaced : replaced_) {
    if (const auto throttle = replaced.lock()) throttle->line().drain();
  }
}

}  // namespace weir
