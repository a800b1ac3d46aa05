#pragma once

// Tells when one of some files has become another one: written in place, replaced by a rename, or
// reached through a symbolic link that now leads elsewhere, as Kubernetes swaps a ConfigMap. Asks
// by name, so that no kind of replacement goes unseen; on its loop's thread.

#include <functional>
#include <map>
#include <string>

#include "daemon/file_look.h"
#include "proxy/http/loop.h"

namespace weir {

class FileWatch {
 public:
  // `files` is how they looked when they were read. `changed` is called once a change has settled,
  // so that no half-written file is read.
  FileWatch(http::Loop& loop, const FileLooks& files, std::function<void()> changed);

  // These, and no others any more.
  void watch(const FileLooks& files);

 private:
  struct File {
    std::string known;  // what it looked like when it was read, or `changed` was called last
    std::string last;   // at the last look
  };
  void look();

  http::Loop& loop_;
  const std::function<void()> changed_;
  std::map<std::string, File> files_;  // by name
  http::Deadlines::Entry next_look_;
};

}  // namespace weir
