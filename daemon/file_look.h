#pragma once

// What tells that a file has become another one, as far as the file system shows it.

#include <map>
#include <string>

namespace weir {

// Equal as long as it is the same file with the same content; empty: there is none.
std::string look_of(const std::string& file);

using FileLooks = std::map<std::string, std::string>;  // by the file's name

}  // namespace weir
