#include "daemon/yaml_reader.h"

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <variant>

namespace weir {

namespace {

constexpr std::size_t kClose = 2;    // edits that a typing error may be away from what was meant
constexpr std::size_t kFields = 16;  // few sections have more

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& known) {
  std::string_view best;
  std::size_t least = kClose + 1;
  for (std::string_view candidate : known) {
    // Two edits turn any two letters into any others.
    if (name.size() > candidate.size() + kClose ||
        std::min(name.size(), candidate.size()) <= kClose) {
      continue;
    }
    std::size_t distance = edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best.empty() ? "" : " (did you mean " + std::string(best) + "?)";
}

nlohmann::ordered_json scalar_to_json(const YamlNode& node) {
  if (node.quoted) return node.text;
  if (node.text == "true" || node.text == "false") return node.text == "true";
  // What JSON itself takes for a number is one; anything else plain is text.
  auto number = nlohmann::ordered_json::parse(node.text, nullptr, false);
  return number.is_number() ? number : nlohmann::ordered_json(node.text);
}

// A tree without a fixed shape. Repeated keys go to `repeated`; their last value is kept.
nlohmann::ordered_json node_to_json(const YamlNode& node, std::vector<const YamlEntry*>& repeated) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return nullptr;
    case YamlNode::Kind::scalar:
      return scalar_to_json(node);
    case YamlNode::Kind::list: {
      auto list = nlohmann::ordered_json::array();
      for (const YamlEntry& entry : node.entries) {
        list.push_back(node_to_json(*entry.value, repeated));
      }
      return list;
    }
    case YamlNode::Kind::map:
      break;
  }
  std::map<std::string_view, nlohmann::ordered_json> members;
  for (const YamlEntry& entry : node.entries) {
    auto [member, fresh] = members.try_emplace(entry.key);
    if (!fresh) repeated.push_back(&entry);
    member->second = node_to_json(*entry.value, repeated);
  }
  nlohmann::ordered_json::object_t object;
  object.reserve(members.size());
  for (auto& [key, value] : members) object.push_back({std::string(key), std::move(value)});
  return object;
}

std::string beside(const std::string& file, const std::string& name) {
  std::size_t slash = file.rfind('/');
  if (name.starts_with('/') || slash == std::string::npos) return name;
  return file.substr(0, slash + 1) + name;
}

}  // namespace

std::string Place::path() const {
  if (!around) return "";
  const std::string before = around->path();
  if (around->node.kind == YamlNode::Kind::list) return before + "[" + std::to_string(index) + "]";
  return (before.empty() ? "" : before + ".") + printable(name);
}

Section::Section(Source& source, const Place& place)
    : source_(source), place_(place), repeated_(refuse_repeated(place)) {
  known_.reserve(kFields);
}

// The first of that name.
std::optional<Place> Section::find(std::string_view name) {
  known_.push_back(name);
  const auto found = std::ranges::find(place_.node.entries, name, &YamlEntry::key);
  if (found == place_.node.entries.end()) return std::nullopt;
  return part_of(place_, *found);
}

Place Section::part_of(const Place& map, const YamlEntry& entry) {
  return {*entry.value, line_of(entry), &map, entry.key};
}

Place Section::item(const Place& list, std::size_t index) {
  const YamlEntry& entry = list.node.entries[index];
  return {*entry.value, entry.line, &list, {}, index};
}

Section::Repeated Section::refuse_repeated(const Place& map) {
  std::vector<const YamlEntry*> sorted;
  sorted.reserve(map.node.entries.size());
  for (const YamlEntry& entry : map.node.entries) sorted.push_back(&entry);
  // Those of one name as they came: entries are in one array.
  std::ranges::sort(sorted, [](const YamlEntry* a, const YamlEntry* b) {
    return std::tie(a->key, a) < std::tie(b->key, b);
  });
  Repeated repeated;
  const YamlEntry* first = nullptr;
  for (const YamlEntry* entry : sorted) {
    if (first && entry->key == first->key) {
      repeated.emplace(entry, first->line);
    } else {
      first = entry;
    }
  }
  for (const auto& [entry, line] : repeated) {
    source_.diagnostics.fail_at({source_.name, entry->line}, part_of(map, *entry).path(),
                                "given twice, first on line " + std::to_string(line));
  }
  return repeated;
}

bool Section::expect(const Place& place, YamlNode::Kind kind, std::size_t most) {
  if (place.node.kind == YamlNode::Kind::null) return false;
  if (place.node.kind != kind) {
    std::string wanted = kind == YamlNode::Kind::list ? "a list" : "a map";
    fail(place, "must be " + wanted + ", not " + shown(place.node));
  } else if (place.node.entries.size() > most) {
    fail(place, "must not have more than " + std::to_string(most) + " entries");
  } else {
    return true;
  }
  return false;
}

void Section::fail(const Place& place, const std::string& what) {
  source_.diagnostics.fail_at({source_.name, place.line}, place.path(), what);
}

void Section::document(std::string_view name, std::string& text) {
  auto place = find(name);
  if (!place || place->node.kind == YamlNode::Kind::null) return;
  std::shared_ptr<const YamlNode> from_file;
  std::string file = source_.name;
  if (place->node.kind == YamlNode::Kind::scalar) {
    file = beside(source_.name, place->node.text);
    FileText read = source_.read_file ? source_.read_file(file)
                                      : FileText(Unreadable{"files are out of reach here"});
    if (auto* unreadable = std::get_if<Unreadable>(&read)) {
      fail(*place, printable(file) + " cannot be read: " + unreadable->why);
      return;
    }
    auto parsed = parse_yaml(std::get<std::string>(read));
    if (auto* error = std::get_if<YamlError>(&parsed)) {
      source_.diagnostics.fail_at({file, error->line}, place->path(), error->what);
      return;
    }
    from_file = std::get<0>(parsed);
  }
  const YamlNode& node = from_file ? *from_file : place->node;
  if (node.kind != YamlNode::Kind::map) {
    fail(*place, "must be a map or the name of a file that has one, not " + shown(node));
    return;
  }
  std::vector<const YamlEntry*> repeated;
  auto json = node_to_json(node, repeated);
  for (const YamlEntry* entry : repeated) {
    source_.diagnostics.fail_at({file, entry->line}, place->path(),
                                quote(entry->key) + " is given twice");
  }
  text = json.empty() ? ""
                      : json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void Section::refuse_unknown() const {
  for (const YamlEntry& entry : place_.node.entries) {
    const bool known = std::ranges::find(known_, entry.key) != known_.end();
    if (known || repeated_.contains(&entry)) continue;
    const Place place = part_of(place_, entry);
    source_.diagnostics.fail_at({source_.name, place.line}, place.path(),
                                "unknown field" + suggestion(entry.key, known_));
  }
}

}  // namespace weir
