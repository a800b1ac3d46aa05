#pragma once

// Whether the answers of etcd are all of one history. A cluster that was restored from a backup, or
// made anew, has another id, or revisions lower than those it has told before. A pure object, owned
// by the coordination loop.
//
// Calls overlap, so an answer is judged by what was known when it was asked for.

#include <cstdint>
#include <optional>

#include "coordination/store.h"

namespace weir::etcd {

class Lineage {
 public:
  // What is known when a call is sent.
  struct Known {
    std::uint64_t history = 0;  // counts replacements
    Revision revision = 0;
  };
  Known known() const { return known_; }

  // Every header is shown to it. `revision` is left out where etcd may answer from a member that
  // lags behind. True: the cluster was replaced, and this answer is the first of the new one.
  bool replaced_by(std::uint64_t cluster, std::optional<Revision> revision, const Known& at_send);

 private:
  Known known_;
  std::uint64_t cluster_ = 0;  // 0: none has answered yet
};

}  // namespace weir::etcd
