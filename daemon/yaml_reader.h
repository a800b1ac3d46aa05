#pragma once

// The visitor that fills a description (schema.h) from a YAML tree. Fields that the tree does not
// have keep their values, so that several trees can be read over one another; all that is wrong
// goes into the Diagnostics: unknown and repeated fields, wrong types, bad values. Paths of fields
// are made for errors alone. Used by one thread, for one load.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/config.h"
#include "daemon/diagnostics.h"
#include "daemon/text_checks.h"
#include "daemon/values.h"
#include "daemon/yaml_tree.h"

namespace weir {

// One source being read. Outlives every Section of it.
struct Source {
  Diagnostics& diagnostics;
  std::string name;  // the file's name, or the flag's or variable's
  const ReadFile& read_file;
};

// A value in the tree, with what errors say about it. Outlives the places within it.
struct Place {
  const YamlNode& node;
  int line;
  const Place* around = nullptr;  // nullptr: it is the root
  std::string_view name{};        // if that is a map
  std::size_t index = 0;          // if it is a list

  std::string path() const;
};

class Section {
 public:
  // The node is a map; the place outlives the section.
  Section(Source& source, const Place& place);

  template <typename T, typename Kind>
  void field(std::string_view name, T& value, const Kind& kind) {
    if (auto place = find(name)) read_value(*place, value, kind);
  }

  template <typename T, typename Kind>
  void list(std::string_view name, std::vector<T>& values, const Kind& kind) {
    auto place = find(name);
    if (!place || !expect(*place, YamlNode::Kind::list)) return;
    values.clear();
    for (std::size_t i = 0; i < place->node.entries.size(); ++i) {
      if (T value{}; read_value(item(*place, i), value, kind)) values.push_back(std::move(value));
    }
  }

  template <typename T>
  void section(std::string_view name, T&& part) {
    if (auto place = find(name)) read_section(*place, part);
  }

  template <typename T>
  void sections(std::string_view name, std::vector<T>& parts) {
    if (auto place = find(name)) read_sections(*place, parts);
  }

  template <typename T>
  void one_or_more(std::string_view name, std::vector<T>& parts) {
    auto place = find(name);
    if (place && place->node.kind == YamlNode::Kind::map) {
      read_section(*place, parts.emplace_back());
    } else if (place) {
      read_sections(*place, parts);
    }
  }

  template <typename T>
  void named(std::string_view name, std::vector<T>& parts) {
    auto place = find(name);
    if (!place || !expect(*place, YamlNode::Kind::map, kMostNamed)) return;
    const Repeated repeated = refuse_repeated(*place);
    for (const YamlEntry& entry : place->node.entries) {
      if (repeated.contains(&entry)) continue;
      const Place item = part_of(*place, entry);
      std::string key = entry.key;
      if (std::string problem = check_name(key); !problem.empty()) fail(item, problem);
      auto part = std::ranges::find(parts, key, &T::name);
      if (part == parts.end()) {
        part = parts.emplace(parts.end());
        part->name = key;
      }
      read_section(item, *part);
    }
  }

  void document(std::string_view name, std::string& text);

  // To be called once everything known has been asked for.
  void refuse_unknown() const;

 private:
  static constexpr std::size_t kMostSections = 10'000, kMostNamed = 1'000;

  // Entries of a map whose name an earlier one has, with the first one's line.
  using Repeated = std::map<const YamlEntry*, int>;

  std::optional<Place> find(std::string_view name);
  static Place part_of(const Place& map, const YamlEntry& entry);
  static Place item(const Place& list, std::size_t index);
  Repeated refuse_repeated(const Place& map);
  // False if the node is null, which is an empty collection; or, which is an error, another kind or
  // larger than anyone would write.
  bool expect(const Place& place, YamlNode::Kind kind, std::size_t most = kMostYamlValues);
  void fail(const Place& place, const std::string& what);

  template <typename T, typename Kind>
  bool read_value(const Place& place, T& value, const Kind& kind) {
    Problem problem = place.node.kind == YamlNode::Kind::scalar
                          ? kind.read({place.node.text, place.node.quoted}, value)
                          : "must be " + kind.wanted() + ", not " + shown(place.node);
    if (!problem.empty()) fail(place, problem);
    return problem.empty();
  }

  template <typename T>
  void read_section(const Place& place, T& part) {
    if (!expect(place, YamlNode::Kind::map)) return;
    Section section(source_, place);
    describe(section, part);
    section.refuse_unknown();
  }

  template <typename T>
  void read_sections(const Place& place, std::vector<T>& parts) {
    if (!expect(place, YamlNode::Kind::list, kMostSections)) return;
    for (std::size_t i = 0; i < place.node.entries.size(); ++i) {
      read_section(item(place, i), parts.emplace_back());
    }
  }

  Source& source_;
  const Place& place_;
  const Repeated repeated_;
  std::vector<std::string_view> known_;  // names that were asked for
};

// Reads a whole tree into what it describes. The root may be null, then nothing is set.
template <typename T>
void read_tree(Source& source, const std::shared_ptr<const YamlNode>& tree, T& value) {
  source.diagnostics.add_source(source.name, tree);
  const YamlNode& root = *tree;
  if (root.kind == YamlNode::Kind::null) return;
  if (root.kind != YamlNode::Kind::map) {
    return source.diagnostics.fail("", "must be a map of fields, not " + shown(root));
  }
  const Place place{root, root.line};
  Section section(source, place);
  describe(section, value);
  section.refuse_unknown();
}

}  // namespace weir
