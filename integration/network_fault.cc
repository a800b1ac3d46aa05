#include "integration/network_fault.h"

#include <sstream>
#include <utility>

#include "tests/support/eventually.h"

namespace weir::test {

std::vector<std::string> NetworkFault::slow(Span delay, Span jitter, double lost) {
  return {"slow", std::to_string(delay.count()), std::to_string(jitter.count()),
          std::to_string(lost)};
}

NetworkFault::NetworkFault(const Project& project, const Container& container,
                           const std::string& network, std::vector<std::string> what) {
  what.insert(what.begin() + 1, container.address(network));
  std::vector<std::string> arguments{"run", "-d", "--cap-add", "NET_ADMIN"};
  arguments.insert(arguments.end(), {"--label", "com.docker.compose.project=" + project.name()});
  arguments.insert(arguments.end(), {"--network", "container:" + container.id()});
  arguments.insert(arguments.end(), {"weir-integration/network-faults", "network-fault"});
  arguments.insert(arguments.end(), what.begin(), what.end());
  sidecar_ = docker(std::move(arguments));
  eventually("the network is broken",
             [&] { return docker({"logs", sidecar_}).find("in force") != std::string::npos; });
}

NetworkFault::Did NetworkFault::end() {
  docker({"stop", sidecar_});
  std::istringstream log(docker({"logs", sidecar_}));
  docker({"rm", std::exchange(sidecar_, "")});
  std::string line, word;
  while (std::getline(log, line) && !line.starts_with("met ")) {
  }
  Did did;
  long held = 0;
  std::istringstream(line) >> word >> did.met >> word >> did.lost >> word >> held;
  did.held = Span{held};
  return did;
}

NetworkFault::~NetworkFault() {
  try {
    if (!sidecar_.empty()) end();
  } catch (const std::exception&) {  // then it goes with the project
  }
}

}  // namespace weir::test
