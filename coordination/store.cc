#include "coordination/store.h"

namespace weir {

KeyRange keys_under(std::string_view prefix) {
  const std::string open_end(1, '\0');  // etcd's way to say: to the last key there is
  if (prefix.empty()) return {std::string(1, '\0'), open_end};
  // The first key after all that begin with the prefix: its last byte raised by one. A byte 0xFF
  // cannot be raised, so the one before it is.
  const auto raised = prefix.find_last_not_of('\xFF');
  if (raised == std::string_view::npos) return {std::string(prefix), open_end};
  std::string end(prefix.substr(0, raised + 1));
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {std::string(prefix), std::move(end)};
}

}  // namespace weir
