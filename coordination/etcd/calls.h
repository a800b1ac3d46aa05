#pragma once

// The calls to etcd that are under way, and the one way from gRPC's threads to the coordination
// loop. A call is made and ended on the loop; what happens to it in between is told by gRPC on a
// thread of its own, and posted.
//
// Owned by the store and used on the loop, but for a Landing, which any thread may use. Destroyed
// on the loop or after it has stopped: it cancels what is under way and waits until gRPC has let go
// of it. From then on nothing is posted, and what was posted before does nothing when it runs.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace weir::etcd {

// Runs functions on the coordination loop, in order, later: never before it returns. Called by any
// thread.
using Post = std::function<void(std::function<void()>)>;

class Call {
 public:
  virtual ~Call() = default;
  virtual void cancel() = 0;
  // It is over: hands its result to whoever asked.
  virtual void finish() = 0;
};

class Calls {
  struct State;

 public:
  // A call's way home. Its calls must be made by gRPC's threads (or by gRPC on ours) in order.
  class Landing {
   public:
    // False: nobody is there any more.
    bool post(std::function<void()> step) const;
    // gRPC has let go of the call. To be called once, as the last that touches it.
    void land() const;

   private:
    friend class Calls;
    Landing(std::shared_ptr<State> state, std::uint64_t id) : state_(std::move(state)), id_(id) {}
    std::shared_ptr<State> state_;
    std::uint64_t id_;
  };

  explicit Calls(Post post);
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // Called before gRPC gets to know of the call, so that its threads see all that was written to
  // it.
  Landing add(std::unique_ptr<Call> call);
  // Runs `step` on the loop, later, if this is still there then.
  void defer(std::function<void()> step);
  std::size_t size() const { return under_way_.size(); }

 private:
  std::shared_ptr<State> state_;
  std::map<std::uint64_t, std::unique_ptr<Call>> under_way_;
  std::uint64_t last_id_ = 0;
};

}  // namespace weir::etcd
