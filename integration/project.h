#pragma once

// docker-compose.yml under a name of its own, so that any number of them can be there at once. It
// goes, whole, with the object; and also where the process dies first, since another process waits
// for just that.

#include <string>
#include <vector>

#include "integration/docker.h"
#include "tests/support/child_process.h"

namespace weir::test {

class Project {
 public:
  // `files` beside docker-compose.yml, from the top of the tree; `environment` is what they refer
  // to.
  Project(std::vector<std::string> files, std::map<std::string, std::string> environment);
  ~Project();
  Project(const Project&) = delete;
  Project& operator=(const Project&) = delete;

  const std::string& name() const { return name_; }
  // docker-compose with these arguments; what it wrote to its standard output.
  std::string compose(std::vector<std::string> arguments) const;
  // Those of a service, in their order.
  std::vector<Container> containers(const std::string& service) const;
  // The only one of it.
  Container container(const std::string& service) const;

 private:
  const std::string name_;
  const std::vector<std::string> files_;
  const std::map<std::string, std::string> environment_;
  Descriptor until_we_end_;  // open for as long as this process lives
};

}  // namespace weir::test
