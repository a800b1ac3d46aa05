#include "daemon/throttles.h"

#include <algorithm>

namespace weir {

std::shared_ptr<UpstreamThrottle> Throttles::configure(const UpstreamOptions& upstream) {
  auto& current = current_[upstream.name];
  auto next = UpstreamThrottle::make(upstream.throttle, current, random_, clock_.steady_now());
  std::erase_if(replaced_, [](const auto& throttle) { return throttle.expired(); });
  if (current && current != next) replaced_.push_back(current);
  return current = std::move(next);
}

void Throttles::keep_only(const std::vector<UpstreamOptions>& upstreams) {
  std::erase_if(current_, [&](const auto& one) {
    const bool kept = std::any_of(upstreams.begin(), upstreams.end(),
                                  [&](const auto& upstream) { return upstream.name == one.first; });
    if (!kept && one.second) replaced_.push_back(one.second);
    return !kept;
  });
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
