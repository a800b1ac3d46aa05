#pragma once

// What one limit protects, as this replica knows it, and the bounded table of them. Workers find
// resources by name; the coordinator keeps their books.

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "coordination/allowance.h"
#include "coordination/books.h"

namespace weir {

// A rule's name with its limit, the same for all resources of the rule. Made once and never taken
// back: a rule that a reload removes keeps its counts. Any thread.
class Policy {
 public:
  explicit Policy(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  Limit limit() const {
    std::lock_guard lock(mutex_);
    return limit_;
  }
  void set_limit(const Limit& limit) {
    std::lock_guard lock(mutex_);
    limit_ = limit;
  }

  // Units, ever.
  std::atomic<std::uint64_t> claimed{0}, returned{0}, lost{0};

 private:
  const std::string name_;
  mutable std::mutex mutex_;
  Limit limit_;  // guarded by mutex_; of this replica: its share, where limits are shared out
};

class Resource : public std::enable_shared_from_this<Resource> {
 public:
  // `ask` gets this resource whenever it wants the coordinator; `sole`, if no other process
  // counts it.
  Resource(Policy& policy, std::string name, const Clock& clock, WaitingRoom& room,
           const std::function<void(Resource&)>& ask, ForwardTime* sole);

  Policy& policy() const { return policy_; }
  const std::string& name() const { return name_; }
  // Holds the whole resource.
  std::shared_ptr<Allowance> allowance() { return {shared_from_this(), &allowance_}; }

  Books books;  // the coordination loop's alone
  // Until then what it claimed must not be forgotten, by the wall clock. Any thread.
  std::atomic<WallTime::rep> remembered_until{0};

 private:
  friend class ResourceTable;
  Policy& policy_;
  bool used_ = false;  // since its last turn to be forgotten; guarded by the table's shard
  const std::string name_;
  Allowance allowance_;
};

// Names of all policies; when there are too many, those not used of late are forgotten first. One
// that has waiters, units or claims that still count stays; when none can go, new names share their
// policy's overflow resource, so that the limit is never lifted by asking for many names. Any
// thread.
class ResourceTable {
 public:
  // `sole`, if no other process counts them: the time that all of them have together.
  ResourceTable(const Clock& clock, WaitingRoom& room, std::function<void(Resource&)> ask,
                std::size_t max_resources, ForwardTime* sole);

  std::shared_ptr<Resource> find(Policy& policy, std::string_view name);
  // As find(), but neither makes one nor counts as a use. nullptr: there is none.
  std::shared_ptr<Resource> peek(const Policy& policy, std::string_view name) const;
  std::vector<std::shared_ptr<Resource>> all() const;

  std::size_t size() const { return size_; }
  std::uint64_t overflows() const { return overflows_; }
  void set_max(std::size_t max_resources) { max_ = max_resources; }

  static constexpr std::string_view kOverflow = "overflow";

 private:
  struct Name {
    Name(const Policy& of, std::string_view text);
    const Policy* policy;
    std::string_view name;
    std::size_t hash;
    friend bool operator==(const Name& a, const Name& b) {
      return a.hash == b.hash && a.policy == b.policy && a.name == b.name;
    }
  };
  struct Hash {
    std::size_t operator()(const Name& name) const noexcept { return name.hash; }
  };
  static constexpr int kLooks = 64;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<Name, std::shared_ptr<Resource>, Hash> by_name;
    // The same: whose turn to be forgotten comes next is first. A use moves none, which would touch
    // its neighbours too.
    std::deque<std::shared_ptr<Resource>> turns;
    int looks = kLooks;  // left to find one that can be forgotten
  };

  Shard& shard_of(const Name& name) const;
  std::shared_ptr<Resource> insert(Shard& shard, Policy& policy, std::string_view name);
  static Name name_of(const Resource& resource) { return {resource.policy_, resource.name_}; }
  bool make_room(Shard& shard);

  const Clock& clock_;
  WaitingRoom& room_;
  const std::function<void(Resource&)> ask_;
  ForwardTime* const sole_;
  std::atomic<std::size_t> max_;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::uint64_t> overflows_{0};
  mutable std::vector<Shard> shards_;
};

}  // namespace weir
