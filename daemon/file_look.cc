#include "daemon/file_look.h"

#include <sys/stat.h>

namespace weir {

std::string look_of(const std::string& file) {
  struct stat facts{};
  if (::stat(file.c_str(), &facts) != 0) return {};
  return std::to_string(facts.st_dev) + "/" + std::to_string(facts.st_ino) + "/" +
         std::to_string(facts.st_size) + "/" + std::to_string(facts.st_mtim.tv_sec) + "." +
         std::to_string(facts.st_mtim.tv_nsec);
}

}  // namespace weir
