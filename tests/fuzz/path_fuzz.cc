// Whatever a client sends as its target: it is refused, or what is forwarded and counted is
// canonical. The first byte chooses the method and whether escaped slashes are kept; the rest is
// the target.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "proxy/path.h"

namespace weir {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

void require_canonical_escapes(std::string_view path) {
  constexpr std::string_view unreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    require(path.size() - at >= 3);
    const std::size_t high = digits.find(path[at + 1]);
    const std::size_t low = digits.find(path[at + 2]);
    require(high != std::string_view::npos && low != std::string_view::npos);
    const std::size_t byte = high * 16 + low;
    require(byte != 0 && unreserved.find(static_cast<char>(byte)) == std::string_view::npos);
  }
}

void require_canonical(std::string_view path, EscapedSlashes slashes) {
  require(path.starts_with('/'));
  for (const unsigned char c : path) require(c > 0x20 && c < 0x7f && c != '#' && c != '?');
  require_canonical_escapes(path);
  // As an upstream sees it that cuts params before it looks for dots, and as one that does not.
  std::string cut;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == ';') i = std::min(path.find('/', i), path.size());
    if (i < path.size()) cut += path[i];
  }
  for (const std::string_view seen : {path, std::string_view(cut)}) {
    require(!contains(seen, "//") && !contains(seen, "/./") && !contains(seen, "/../"));
    require(!seen.ends_with("/.") && !seen.ends_with("/.."));
  }
  if (slashes == EscapedSlashes::reject) {
    require(!contains(path, "%2F") && !contains(path, "%5C") && !contains(path, "\\"));
  }
}

void check(std::string_view method, std::string_view target, EscapedSlashes slashes) {
  std::string scratch;
  const CanonicalTarget result = canonical_target(method, target, slashes, scratch);
  const auto* good = std::get_if<Target>(&result);
  if (!good) return;
  if (!target.starts_with('/') && target != "*") {
    require(valid_authority(good->authority));
    require(!host_of(good->authority).empty());
  } else {
    require(good->authority.empty());
  }
  if (good->forward != "*") {
    const std::string_view path = good->forward.substr(0, good->forward.find('?'));
    require_canonical(path, slashes);
    require_canonical(good->counted, slashes);
    require(!contains(good->counted, ";"));
    if (!contains(path, ";")) require(path == good->counted);
    const std::size_t query = target.find('?');
    require(good->forward.substr(path.size()) ==
            (query == std::string_view::npos ? std::string_view{} : target.substr(query)));
  }
  std::string again_scratch;
  const auto again = canonical_target(method, good->forward, slashes, again_scratch);
  require(std::get<Target>(again).forward == good->forward);
  require(std::get<Target>(again).counted == good->counted);
  const auto counted_again = canonical_target(method, good->counted, slashes, again_scratch);
  require(std::get<Target>(counted_again).counted.data() == good->counted.data() ||
          good->counted == "*");
}

}  // namespace
}  // namespace weir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto slashes = data[0] & 1 ? weir::EscapedSlashes::keep : weir::EscapedSlashes::reject;
  weir::check(data[0] & 2 ? "OPTIONS" : "GET", input.substr(1), slashes);
  return 0;
}
