#pragma once

// The Docker engine, by its command line. Calls block, and throw with what docker said where it
// refused.

#include <map>
#include <string>
#include <vector>

#include "tests/support/child_process.h"

namespace weir::test {

// What it wrote to its standard output, without the last line's end.
std::string docker(std::vector<std::string> arguments, Span timeout = 60s);

// One container of a project. Tests hold references to those that the project owns.
class Container {
 public:
  Container(std::string project, std::string id);

  const std::string& id() const { return id_; }
  // Its address in one of the project's networks; empty: it has none now.
  std::string address(const std::string& network) const;
  std::string log() const;

  void kill();  // SIGKILL
  void stop();  // as an operator would; returns when it has ended
  void start();
  void pause();  // no thread of it runs
  void unpause();
  // Its interface in that network goes, and comes back under the same names, at any address.
  void disconnect(const std::string& network);
  void connect(const std::string& network);

 private:
  std::string full_name(const std::string& network) const { return project_ + "_" + network; }

  std::string project_, id_;
  std::map<std::string, std::vector<std::string>> aliases_;  // by network, of those cut off
};

}  // namespace weir::test
