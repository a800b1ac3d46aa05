#pragma once

// The visitor that fills a description (schema.h) from a YAML tree. Fields that the tree does not
// have keep their values, so that several trees can be read over one another; the place of each
// field that it has goes into the Diagnostics, and so does all that is wrong: unknown and repeated
// fields, wrong types, bad values. Used by one thread, for one load.

#include <algorithm>
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

// A value in the tree, with what errors say about it.
struct Place {
  const YamlNode& node;
  std::string path;
  int line;
};

class Section {
 public:
  // The node is a map and outlives the section.
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
    for (const Place& item : items(*place)) {
      if (T value{}; read_value(item, value, kind)) values.push_back(std::move(value));
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
    for (auto& [key, item] : entries(*place)) {
      locate(item);
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

  std::optional<Place> find(std::string_view name);
  std::vector<Place> items(const Place& list);
  std::vector<std::pair<std::string, Place>> entries(const Place& map);
  // False if the node is null, which is an empty collection; or, which is an error, another kind or
  // larger than anyone would write.
  bool expect(const Place& place, YamlNode::Kind kind, std::size_t most = kMostYamlValues);
  void locate(const Place& place);
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
    for (const Place& item : items(place)) read_section(item, parts.emplace_back());
  }

  Source& source_;
  std::vector<std::pair<std::string, Place>> entries_;  // each name once
  std::vector<std::string_view> known_;                 // names that were asked for
};

// Reads a whole tree into what it describes. The root may be null, then nothing is set.
template <typename T>
void read_tree(Source& source, const YamlNode& root, T& value) {
  if (root.kind == YamlNode::Kind::null) return;
  if (root.kind != YamlNode::Kind::map) {
    return source.diagnostics.fail("", "must be a map of fields, not " + shown(root));
  }
  Section section(source, {root, "", root.line});
  describe(section, value);
  section.refuse_unknown();
}

}  // namespace weir
