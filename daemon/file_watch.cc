#include "daemon/file_watch.h"

#include <sys/stat.h>

namespace weir {
namespace {

constexpr std::chrono::milliseconds kInterval{250};

// Equal as long as it is the same file with the same content, as far as the file system tells.
std::string look_of(const std::string& file) {
  struct stat facts{};
  if (::stat(file.c_str(), &facts) != 0) return {};
  return std::to_string(facts.st_dev) + "/" + std::to_string(facts.st_ino) + "/" +
         std::to_string(facts.st_size) + "/" + std::to_string(facts.st_mtim.tv_sec) + "." +
         std::to_string(facts.st_mtim.tv_nsec);
}

}  // namespace

FileWatch::FileWatch(http::Loop& loop, std::string file, std::function<void()> changed)
    : loop_(loop),
      file_(std::move(file)),
      changed_(std::move(changed)),
      known_(look_of(file_)),
      last_(known_),
      next_look_([this] { look(); }) {
  loop_.deadlines().arm(next_look_, kInterval);
}

void FileWatch::look() {
  const std::string now = look_of(file_);
  // A file that is away for a moment is being replaced; one that differs from the last look may
  // still be written to.
  if (!now.empty() && now == last_ && now != known_) {
    known_ = now;
    changed_();
  }
  last_ = now;
  loop_.deadlines().arm(next_look_, kInterval);
}

}  // namespace weir
