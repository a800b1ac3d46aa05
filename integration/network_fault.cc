#include "integration/network_fault.h"

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

NetworkFault::~NetworkFault() {
  try {
    docker({"stop", sidecar_});
    docker({"rm", sidecar_});
  } catch (const std::exception&) {  // then it goes with the project
  }
}

}  // namespace weir::test
