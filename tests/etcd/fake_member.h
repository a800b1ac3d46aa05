#pragma once

// A member of etcd that answers with what it is told to: for what the real one cannot be made to
// say. It knows Status, and transactions that change nothing.

#include <atomic>
#include <memory>
#include <string>

namespace weir::test {

struct FakeStatus {
  std::string version = "3.7.0";
  bool has_leader = true, is_learner = false;
};

class FakeMember {
 public:
  explicit FakeMember(FakeStatus status);
  ~FakeMember();

  std::string endpoint() const;
  int transactions() const;
  void set(FakeStatus status);
  // The revision that transactions are answered with.
  void set_revision(std::int64_t revision);

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace weir::test
