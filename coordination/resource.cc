#include "coordination/resource.h"

namespace weir {
namespace {

// Below this many names one lock is as good as several, and the oldest of all can be found.
constexpr std::size_t kWorthSharding = 4096;
constexpr std::size_t kShards = 16;
// How many of the least recently used are looked at for one that can be forgotten. Those that
// cannot go to the other end, so that the next look meets others.
constexpr int kLooks = 32;

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

std::size_t ResourceTable::Hash::operator()(const Name& name) const {
  return std::hash<std::string_view>{}(name.name) ^ (std::hash<const void*>{}(name.policy) * 31);
}

ResourceTable::Shard& ResourceTable::shard_of(const Name& name) const {
  return shards_[(Hash{}(name) >> 7) % shards_.size()];
}

std::shared_ptr<Resource> ResourceTable::find(Policy& policy, std::string_view name) {
  const Name key{&policy, name};
  Shard& shard = shard_of(key);
  {
    std::lock_guard lock(shard.mutex);
    const auto found = shard.by_name.find(key);
    if (found != shard.by_name.end()) {
      shard.order.splice(shard.order.begin(), shard.order, found->second);
      return *found->second;
    }
    if (name == kOverflow || size_ < max_ || make_room(shard)) return insert(shard, policy, name);
  }
  ++overflows_;
  return find(policy, kOverflow);
}

std::shared_ptr<Resource> ResourceTable::peek(const Policy& policy, std::string_view name) const {
  const Name key{&policy, name};
  Shard& shard = shard_of(key);
  std::lock_guard lock(shard.mutex);
  const auto found = shard.by_name.find(key);
  return found == shard.by_name.end() ? nullptr : *found->second;
}

std::shared_ptr<Resource> ResourceTable::insert(Shard& shard, Policy& policy,
                                                std::string_view name) {
  auto resource = std::make_shared<Resource>(policy, std::string{name}, clock_, room_, ask_, sole_);
  shard.order.push_front(resource);
  resource->place_ = shard.order.begin();
  shard.by_name.emplace(Name{&policy, resource->name()}, resource->place_);
  ++size_;
  return resource;
}

bool ResourceTable::make_room(Shard& shard) {
  const auto now = clock_.wall_now().time_since_epoch().count();
  for (int looks = 0; looks < kLooks && !shard.order.empty(); ++looks) {
    const auto place = std::prev(shard.order.end());
    Resource& resource = **place;
    // Somebody may still have it, be it a request that was sent long ago: there must never be two
    // of one name, each taking the other's claims for left-overs.
    if (resource.remembered_until > now || place->use_count() > 1 || !resource.allowance_.idle()) {
      shard.order.splice(shard.order.begin(), shard.order, place);
      continue;
    }
    shard.by_name.erase(Name{&resource.policy_, resource.name_});
    shard.order.erase(place);
    --size_;
    return true;
  }
  return false;
}

std::vector<std::shared_ptr<Resource>> ResourceTable::all() const {
  std::vector<std::shared_ptr<Resource>> resources;
  resources.reserve(size_);
  for (const Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    resources.insert(resources.end(), shard.order.begin(), shard.order.end());
  }
  return resources;
}

}  // namespace weir
