#pragma once

// Tells when a file has become another one: written in place, replaced by a rename, or reached
// through a symbolic link that now leads elsewhere, as Kubernetes swaps a ConfigMap. Asks by name,
// so that no kind of replacement goes unseen; on its loop's thread.

#include <functional>
#include <string>

#include "proxy/http/loop.h"

namespace weir {

class FileWatch {
 public:
  // `changed` is called once a change has settled, so that no half-written file is read.
  FileWatch(http::Loop& loop, std::string file, std::function<void()> changed);

 private:
  void look();

  http::Loop& loop_;
  const std::string file_;
  const std::function<void()> changed_;
  std::string known_;  // what the file looked like when `changed` was called last
  std::string last_;   // at the last look
  http::Deadlines::Entry next_look_;
};

}  // namespace weir
