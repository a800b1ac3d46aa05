#pragma once

// YAML text as a tree of plain values that keep their lines. Built from libyaml's events instead
// of its nodes, because those forget lines, hide duplicate keys and let aliases form cycles. Any
// text is safe: size, depth and the number of values, aliases expanded, are bounded.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir {

inline constexpr std::size_t kLargestYaml = 1 << 20;     // bytes of text
inline constexpr std::size_t kDeepestYaml = 64;          // levels
inline constexpr std::size_t kMostYamlValues = 100'000;  // with every alias expanded

struct YamlNode;

struct YamlEntry {
  std::string key;  // empty in a list
  int line = 0;     // of the key; in a list of the value
  std::shared_ptr<const YamlNode> value;
};

// Constant once built; an alias shares the node that its anchor names.
struct YamlNode {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  int line = 0;
  std::string text;                // scalar
  bool quoted = false;             // scalar
  std::vector<YamlEntry> entries;  // list or map, in order; a map may repeat a key

  std::size_t depth = 1;   // levels below and including this one
  std::size_t values = 1;  // this one and all below
};

// A collection begins where its name is; a value may stand on a line of its own.
inline int line_of(const YamlEntry& entry) {
  return entry.value->kind == YamlNode::Kind::scalar ? entry.value->line : entry.line;
}

struct YamlError {
  int line;
  std::string what;
};

// An empty text is a null node.
std::variant<std::shared_ptr<const YamlNode>, YamlError> parse_yaml(std::string_view text);

std::shared_ptr<const YamlNode> yaml_scalar(std::string_view text);
std::shared_ptr<const YamlNode> yaml_list(const std::vector<std::string>& texts);
// A map of one entry, around the value.
std::shared_ptr<const YamlNode> yaml_within(std::string_view key,
                                            std::shared_ptr<const YamlNode> value);

// "a list", "a map", "nothing", or the scalar in quotes: for "must be …, not …".
std::string shown(const YamlNode& node);

}  // namespace weir
