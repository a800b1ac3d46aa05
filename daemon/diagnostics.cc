#include "daemon/diagnostics.h"

#include <charconv>
#include <limits>
#include <ranges>
#include <utility>

#include "daemon/yaml_tree.h"

namespace weir {

namespace {

constexpr std::size_t kLongestShown = 80;

std::string parent(const std::string& path) {
  std::size_t end = path.find_last_of(".[");
  return end == std::string::npos ? "" : path.substr(0, end);
}

// The number in [n] that the path begins with, which is taken off it.
std::optional<std::size_t> take_index(std::string_view& path) {
  std::size_t index = 0;
  const char* const end = path.data() + path.size();
  if (!path.starts_with('[')) return std::nullopt;
  const auto parsed = std::from_chars(path.data() + 1, end, index);
  if (parsed.ec != std::errc{} || parsed.ptr == end || *parsed.ptr != ']') return std::nullopt;
  path.remove_prefix(static_cast<std::size_t>(parsed.ptr + 1 - path.data()));
  return index;
}

// True if the path begins with this name, which is then taken off it. Names may have dots in them.
bool take_name(std::string_view& path, std::string_view key) {
  const std::string name = printable(key);
  if (!path.starts_with(name)) return false;
  const std::string_view rest = path.substr(name.size());
  if (!rest.empty() && rest.front() != '.' && rest.front() != '[') return false;
  path = rest;
  return true;
}

// What the first step of the path leads to; the step is taken off.
const YamlEntry* take_step(std::string_view& path, const YamlNode& from) {
  if (from.kind == YamlNode::Kind::list) {
    const auto index = take_index(path);
    return index && *index < from.entries.size() ? &from.entries[*index] : nullptr;
  }
  if (path.starts_with('.')) path.remove_prefix(1);
  for (const YamlEntry& entry : from.entries) {
    if (take_name(path, entry.key)) return &entry;
  }
  return nullptr;
}

// Nothing: the tree does not set that field. A flag (line 0) sets one value, not the section that
// the value happens to be in.
std::optional<int> line_of(std::string_view path, const YamlNode& root) {
  const YamlNode* node = &root;
  int line = root.line;
  while (!path.empty()) {
    const YamlEntry* const entry = take_step(path, *node);
    if (!entry) return std::nullopt;
    line = line_of(*entry);
    node = entry->value.get();
  }
  if (line == 0 && node->kind == YamlNode::Kind::map) return std::nullopt;
  return line;
}

std::string render(const Origin& origin, const std::string& path, const std::string& what) {
  std::string field = path.empty() ? "" : path + ": ";
  if (origin.source.empty()) return field + what;
  if (origin.line == 0) return origin.source + ": " + what;
  return origin.source + ":" + std::to_string(origin.line) + ": " + field + what;
}

}  // namespace

void Diagnostics::add_source(std::string name, std::shared_ptr<const YamlNode> tree) {
  sources_.push_back({std::move(name), std::move(tree)});
}

std::optional<Origin> Diagnostics::origin_of(std::string_view path) const {
  if (path.empty()) return root_;
  for (const Read& source : std::views::reverse(sources_)) {
    if (const auto line = line_of(path, *source.tree)) return Origin{source.name, *line};
  }
  return std::nullopt;
}

void Diagnostics::fail(const std::string& path, const std::string& what) {
  std::string place = path;
  while (!given(place)) place = parent(place);
  fail_at(*origin_of(place), path, what);
}

void Diagnostics::fail_at(const Origin& origin, const std::string& path, const std::string& what) {
  failed_.insert(path);
  int line = origin.line == 0 ? std::numeric_limits<int>::max() : origin.line;
  errors_.emplace(line, render(origin, path, what));
}

bool Diagnostics::good(const std::string& path) const {
  for (auto it = failed_.lower_bound(path); it != failed_.end() && it->starts_with(path); ++it) {
    if (it->size() == path.size() || (*it)[path.size()] == '.' || (*it)[path.size()] == '[') {
      return false;
    }
  }
  return true;
}

void Diagnostics::refuse(const std::string& path, const std::string& what) {
  if (good(path)) fail(path, what);
}

void Diagnostics::require(bool condition, const std::string& path, const std::string& what) {
  if (!condition) refuse(path, what);
}

std::vector<std::string> Diagnostics::errors() const {
  std::vector<std::string> lines;
  std::set<std::string_view> seen;
  for (const auto& [line, text] : errors_) {
    if (seen.insert(text).second) lines.push_back(text);
  }
  return lines;
}

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kLongestShown));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (text.size() > kLongestShown) {
    // A character cut in two would make the message ill-formed UTF-8.
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xc0) == 0x80) {
      shown.pop_back();
    }
    if (!shown.empty() && static_cast<unsigned char>(shown.back()) >= 0xc0) shown.pop_back();
    shown += "...";
  }
  return shown;
}

std::string quote(std::string_view text) { return '"' + printable(text) + '"'; }

}  // namespace weir
