#pragma once

// Who waits, in order: first come first served, or one after another from each tenant in turn, so
// that a tenant new to the line is served within one round. Places are owned by those who wait;
// every operation but each() is O(1). Not thread-safe: an Allowance guards its own.

#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "coordination/limit.h"

namespace weir {

class Line {
 public:
  class Place {
   public:
    bool in_line() const { return queue_ != nullptr; }

   private:
    friend class Line;
    Place* next_ = nullptr;
    Place* previous_ = nullptr;
    void* queue_ = nullptr;
  };

  Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // `tenant` matters only to a fair line.
  void push(Place& place, std::string_view tenant, Queue order);
  // The next one, taken out; nullptr: nobody waits.
  Place* pop();
  // The next one, left where it is; nullptr: nobody waits.
  Place* first() const { return round_.empty() ? nullptr : round_.front().first; }
  // Of those of one tenant, in a fair line; nullptr: none of them waits.
  Place* first_of(std::string_view tenant) const;
  // Shows the first of each tenant, in turn, as long as `judge` does not stop; one that is taken is
  // out, and its tenant comes again behind all others. Who stays keeps its turn.
  enum class Judged { taken, stays, stop };
  void offer(const std::function<Judged(Place&)>& judge);
  // Its turn goes to the next tenant's first.
  void pass();
  // The one who came last, or among tenants the last of one; nullptr: nobody waits.
  Place* pop_last();
  void remove(Place& place);
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t tenants() const { return round_.size(); }  // of a fifo line, one
  // Everybody in no order that matters; `visit` may remove the place that it is given.
  void each(const std::function<void(Place&)>& visit);

 private:
  struct PerTenant;
  using Round = std::list<PerTenant>;  // who is next comes first
  struct PerTenant {
    std::string tenant;
    Place* first = nullptr;
    Place* last = nullptr;
    Round::iterator self;
  };

  Round round_;
  std::unordered_map<std::string_view, PerTenant*> by_tenant_;  // views of PerTenant::tenant
  std::size_t size_ = 0;
};

}  // namespace weir
