#pragma once

// Which versions of etcd may be trusted with a limit. A pure function.

#include <string>
#include <string_view>

namespace weir::etcd {

struct VersionJudgement {
  enum class Use { yes, with_a_warning, no };
  Use use;
  std::string remark{};  // what is wrong with it
};

// A member of a version that cannot be read is not used: range compares, which the limit rests on,
// are silently ignored before 3.3.
VersionJudgement judge_version(std::string_view version);

}  // namespace weir::etcd
