#include "coordination/etcd/versions.h"

#include <charconv>
#include <compare>
#include <optional>

namespace weir::etcd {
namespace {

struct Version {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const Version&) const = default;
};

// "3.4.23", also with what a build adds to it: "3.6.0-rc.1".
std::optional<Version> parse(std::string_view text) {
  Version version;
  for (int* part : {&version.major, &version.minor, &version.patch}) {
    if (part != &version.major) {
      if (!text.starts_with('.')) return std::nullopt;
      text.remove_prefix(1);
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *part);
    if (error != std::errc{} || *part < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return version;
}

// The first patch without a defect, in each line that has it; 0: the line never had it.
struct Fixed {
  int in_3_4, in_3_5, in_3_6;
};

bool is_before(const Version& version, const Fixed& fixed) {
  if (version.major != 3 || version.minor > 6) return version.major < 3;
  switch (version.minor) {
    case 6:
      return version.patch < fixed.in_3_6;
    case 5:
      return version.patch < fixed.in_3_5;
    case 4:
      return version.patch < fixed.in_3_4;
    default:
      return true;  // never fixed
  }
}

}  // namespace

VersionJudgement judge_version(std::string_view text) {
  using Use = VersionJudgement::Use;
  const auto version = parse(text);
  if (!version) return {Use::no, "cannot tell its version"};
  if (*version < Version{3, 3, 0}) return {Use::no, "older than 3.3: it ignores range compares"};
  if (*version >= Version{3, 5, 0} && *version <= Version{3, 5, 2}) {
    return {Use::no, "3.5.0 to 3.5.2 may lose data in a crash"};
  }
  std::string known;
  const auto add = [&known](std::string_view defect) {
    if (!known.empty()) known += ", ";
    known += defect;
  };
  if (is_before(*version, {31, 13, 0})) add("may revoke live leases");
  if (is_before(*version, {38, 23, 5})) add("may keep alive leases that are gone");
  if (*version >= Version{3, 4, 20} && is_before(*version, {42, 28, 9})) {
    add("may read stale after a pause");
  }
  if (known.empty()) return {Use::yes};
  return {Use::with_a_warning, known};
}

}  // namespace weir::etcd
