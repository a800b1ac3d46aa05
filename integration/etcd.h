#pragma once

// The cluster's etcd as an operator sees it: everything is asked with etcdctl, from the host, of
// those members that have an address in the network `store`.

#include <map>
#include <string>
#include <vector>

#include "integration/project.h"

namespace weir::test {

// The most units that were claimed at any revision, by window.
using MostClaimed = std::map<std::string, int>;

class Etcd {
 public:
  explicit Etcd(const Project& project);

  std::size_t size() const { return members_.size(); }
  Container& operator[](std::size_t member) { return members_.at(member); }
  // Of the member that leads, as seen by a majority.
  std::size_t leader() const;
  void move_leader(std::size_t to) const;
  void wait_until_healthy() const;  // every member, by a read that a majority agreed to
  // Throws, unless etcdctl says that all went well.
  std::string ctl(std::vector<std::string> arguments) const;
  // Keys of claims of a rule that any member has, whatever it knows of the others.
  std::vector<std::string> claims_of(const std::string& rule) const;
  // From the first revision to now, from etcd's own history, of one rule.
  MostClaimed most_claimed(const std::string& rule) const;

 private:
  std::string endpoints() const;
  std::string endpoint(std::size_t member) const;
  std::string id(std::size_t member) const;
  Ran try_ctl(const std::string& endpoints, std::vector<std::string> arguments) const;

  std::vector<Container> members_;
};

}  // namespace weir::test
