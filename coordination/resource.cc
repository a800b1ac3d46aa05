#include "coordination/resource.h"

#include <utility>

namespace weir {
namespace {

// Below this many names one lock is as good as several, and all of them are looked at in turn.
constexpr std::size_t kWorthSharding = 4096;
constexpr std::size_t kShards = 16;

}  // namespace

Resource::Resource(Policy& policy, std::string name, const Clock& clock, WaitingRoom& room,
                   const std::function<void(Resource&)>& ask, ForwardTime* sole)
    : policy_(policy),
      name_(std::move(name)),
      allowance_(
          clock, room, [this, &ask] { ask(*this); },
          sole ? std::optional{Allowance::Sole{*sole, policy.claimed, policy.returned}}
               : std::nullopt) {
  if (!sole) return;
  const Limit limit = policy.limit();
  if (counted_here(limit.mode)) allowance_.open_when_asked(limit);
}

ResourceTable::ResourceTable(const Clock& clock, WaitingRoom& room,
                             std::function<void(Resource&)> ask, std::size_t max_resources,
                             ForwardTime* sole)
    : clock_(clock),
      room_(room),
      ask_(std::move(ask)),
      sole_(sole),
      max_(max_resources),
      shards_(max_resources < kWorthSharding ? 1 : kShards) {}

ResourceTable::Name::Name(const Policy& of, std::string_view text)
    : policy(&of),
      name(text),
      hash(std::hash<std::string_view>{}(text) ^ (std::hash<const void*>{}(&of) * 31)) {}

ResourceTable::Shard& ResourceTable::shard_of(const Name& name) const {
  return shards_[(name.hash >> 7) % shards_.size()];
}

std::shared_ptr<Resource> ResourceTable::find(Policy& policy, std::string_view name) {
  const Name key{policy, name};
  Shard& shard = shard_of(key);
  {
    std::lock_guard lock(shard.mutex);
    const auto found = shard.by_name.find(key);
    if (found != shard.by_name.end()) {
      found->second->used_ = true;
      return found->second;
    }
    if (name == kOverflow || size_ < max_ || make_room(shard)) return insert(shard, policy, name);
  }
  ++overflows_;
  return find(policy, kOverflow);
}

std::shared_ptr<Resource> ResourceTable::peek(const Policy& policy, std::string_view name) const {
  const Name key{policy, name};
  Shard& shard = shard_of(key);
  std::lock_guard lock(shard.mutex);
  const auto found = shard.by_name.find(key);
  return found == shard.by_name.end() ? nullptr : found->second;
}

std::shared_ptr<Resource> ResourceTable::insert(Shard& shard, Policy& policy,
                                                std::string_view name) {
  auto resource = std::make_shared<Resource>(policy, std::string{name}, clock_, room_, ask_, sole_);
  shard.by_name.emplace(name_of(*resource), resource);
  shard.turns.push_back(resource);
  ++size_;
  return resource;
}

// Each look is at another name, in turn. One that was used since its last turn is passed over once,
// while there are looks enough. Where none can go, each new name brings one more look only: asking
// for many must stay cheap.
bool ResourceTable::make_room(Shard& shard) {
  const Instant now = clock_.now();
  const WallTime::rep wall = now.wall.time_since_epoch().count();
  for (++shard.looks; shard.looks > 0 && !shard.turns.empty(); --shard.looks) {
    std::shared_ptr<Resource> resource = std::move(shard.turns.front());
    shard.turns.pop_front();
    const bool passed_over = std::exchange(resource->used_, false) && shard.looks > kLooks / 2;
    // Somebody else than this and the map may have it, be it a request that was sent long ago:
    // there must never be two of one name, each taking the other's claims for left-overs.
    if (passed_over || resource->remembered_until > wall || resource.use_count() > 2 ||
        !resource->allowance_.idle(now)) {
      shard.turns.push_back(std::move(resource));
      continue;
    }
    shard.by_name.erase(name_of(*resource));
    --size_;
    shard.looks = kLooks;
    return true;
  }
  return false;
}

std::vector<std::shared_ptr<Resource>> ResourceTable::all() const {
  std::vector<std::shared_ptr<Resource>> resources;
  resources.reserve(size_);
  for (const Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    resources.insert(resources.end(), shard.turns.begin(), shard.turns.end());
  }
  return resources;
}

}  // namespace weir
