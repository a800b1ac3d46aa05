#pragma once

// Which replicas are live: those whose keys are in the store, read once and then watched. Owned by
// the coordination loop. While the store is away the last that was known stays.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coordination/base/clock.h"
#include "coordination/base/random.h"
#include "coordination/keyspace.h"
#include "coordination/store.h"

namespace weir {

class Membership {
 public:
  struct Member {
    ReplicaFacts facts;
    LeaseId lease = 0;
  };
  using Members = std::map<std::string, Member>;  // by name

  // `changed` is called after every reading, and whenever a replica has come or gone.
  Membership(Store& store, Random& random, const Clock& clock, const Keyspace& keys,
             std::function<void()> changed)
      : store_(store), random_(random), clock_(clock), keys_(keys), changed_(std::move(changed)) {}

  const Members& members() const { return members_; }

  void run(SteadyTime now);
  std::optional<SteadyTime> next_due() const;

 private:
  void read();
  void on_read(const TxnAnswer& answer);
  void on_events(std::span<const WatchEvent> events);
  void read_again();
  void put(const KeyValue& entry);

  Store& store_;
  Random& random_;
  const Clock& clock_;
  const Keyspace& keys_;
  const std::function<void()> changed_;

  Members members_;
  std::unique_ptr<Watch> watch_;
  std::optional<SteadyTime> read_at_ = SteadyTime{};  // nothing: under way, or watched
};

}  // namespace weir
