#pragma once

// The store's watches. Each is a stream of its own to the member in use, and lost when that ends,
// is not begun in time, or the member is left. Owned by the store and used on the coordination
// loop.

#include <memory>
#include <optional>
#include <vector>

#include "coordination/base/clock.h"
#include "coordination/etcd/calls.h"
#include "coordination/etcd/members.h"
#include "coordination/store.h"

namespace weir::etcd {

class Watches {
 public:
  using Seen = std::function<void(std::uint64_t cluster_id)>;
  Watches(const Clock& clock, Calls& calls, Members& members, Seen seen,
          std::function<void(std::string)> warn);
  ~Watches();

  std::unique_ptr<Watch> add(KeyRange range, Revision from, SteadyTime deadline,
                             WatchHandler handler);
  void lose_all();

  void run();
  std::optional<SteadyTime> next_due() const;

 private:
  // Owned by the Watch that was handed out.
  struct Watcher {
    KeyRange range;
    Revision from;
    SteadyTime deadline;  // to be begun by
    WatchHandler handler;
    bool begun = false;
    bool over = false;
    Use use{};
    Call* stream = nullptr;  // while there is one
  };
  using Weak = std::weak_ptr<Watcher>;
  class Handle;

  void open(const std::shared_ptr<Watcher>& watcher, const Use& use);
  void on_response(const std::shared_ptr<Watcher>& watcher, etcdserverpb::WatchResponse& response);
  void lose(const std::shared_ptr<Watcher>& watcher);

  const Clock& clock_;
  Calls& calls_;
  Members& members_;
  const Seen seen_;
  const std::function<void(std::string)> warn_;
  std::vector<Weak> watchers_;
};

}  // namespace weir::etcd
