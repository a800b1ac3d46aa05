#include "daemon/file_watch.h"

namespace weir {
namespace {

constexpr std::chrono::milliseconds kInterval{250};

}  // namespace

FileWatch::FileWatch(http::Loop& loop, const FileLooks& files, std::function<void()> changed)
    : loop_(loop), changed_(std::move(changed)), next_look_([this] { look(); }) {
  watch(files);
  loop_.deadlines().arm(next_look_, kInterval);
}

void FileWatch::watch(const FileLooks& files) {
  files_.clear();
  for (const auto& [name, look] : files) files_[name] = {look, look};
}

void FileWatch::look() {
  bool changed = false;
  for (auto& [name, file] : files_) {
    const std::string now = look_of(name);
    // A file that is away for a moment is being replaced; one that differs from the last look may
    // still be written to.
    if (!now.empty() && now == file.last && now != file.known) {
      file.known = now;
      changed = true;
    }
    file.last = now;
  }
  loop_.deadlines().arm(next_look_, kInterval);
  if (changed) changed_();
}

}  // namespace weir
