#pragma once

// What is wrong with one container's network, for as long as the object is there. The other
// networks of the container, and those who are in the same one, are not touched.

#include <string>
#include <vector>

#include "integration/project.h"

namespace weir::test {

class NetworkFault {
 public:
  // Packets vanish, without a word to either side.
  static std::vector<std::string> nothing_leaves() { return {"drop-out"}; }
  static std::vector<std::string> nothing_arrives() { return {"drop-in"}; }
  static std::vector<std::string> silence() { return {"drop"}; }
  // Each packet is held for `delay` ± `jitter` and so overtakes others; some are lost.
  static std::vector<std::string> slow(Span delay, Span jitter, double lost);

  NetworkFault(const Project& project, const Container& container, const std::string& network,
               std::vector<std::string> what);
  ~NetworkFault();
  // The network is whole again. What slow() did: packets, those of them that were lost, and for how
  // long the others were held on average.
  struct Did {
    long met = 0, lost = 0;
    Span held{0};
  };
  Did end();
  NetworkFault(const NetworkFault&) = delete;
  NetworkFault& operator=(const NetworkFault&) = delete;

 private:
  std::string sidecar_;  // a container in the network namespace of the other; empty: ended
};

}  // namespace weir::test
