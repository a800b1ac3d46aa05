#include "coordination/etcd/lineage.h"

#include <algorithm>

namespace weir::etcd {

bool Lineage::replaced_by(std::uint64_t cluster, std::optional<Revision> revision,
                          const Known& at_send) {
  // Asked before the last replacement: from the old cluster or the new one, it tells nothing new.
  if (at_send.history != known_.history) return false;
  const bool is_first = cluster_ == 0;
  const bool is_other = !is_first && cluster != cluster_;
  if (is_other || (revision && *revision < at_send.revision)) {
    cluster_ = cluster;
    known_ = {known_.history + 1, revision.value_or(0)};
    return true;
  }
  cluster_ = cluster;
  known_.revision = std::max(known_.revision, revision.value_or(0));
  return false;
}

}  // namespace weir::etcd
