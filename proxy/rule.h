#pragma once

// Rules as they are configured: which requests one limit is for, what is counted, and where they
// go. route.h is what applies them.

#include <string>
#include <vector>

#include "coordination/limit.h"

namespace weir {

// A request matches if each part that is given matches; an empty part matches anything.
struct Match {
  std::string path;                  // "/reports/*": `*` is one segment, `**` any rest
  std::vector<std::string> methods;  // upper case
  std::string host;                  // without port, lower case
};

struct Rule {
  std::string name;
  std::vector<Match> matches;  // any of them; empty: every request
  std::string resource = "{path}";
  Limit limit;
  std::string upstream = "main";
};

// Where a request says who it comes from.
struct TenantSource {
  enum class Kind { client_ip, header, segment };
  Kind kind = Kind::client_ip;
  std::string header;  // lower case
  int segment = 0;     // 1 is the first
};

}  // namespace weir
