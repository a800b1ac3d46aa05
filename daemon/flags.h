#pragma once

// The daemon's command line and environment, as far as they say what to do and where the
// configuration comes from. What the values mean is checked with the configuration.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config.h"

namespace weir {

// The value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

struct Flags {
  Sources sources;                    // flags over environment
  bool check = false;                 // validate and exit
  std::optional<std::string> answer;  // of --help or --version: print it and exit with 0
  std::vector<std::string> errors;    // unknown flags, missing values
};

// `arguments` without the program's name.
Flags parse_flags(std::vector<std::string> arguments, const Environment& environment);

}  // namespace weir
