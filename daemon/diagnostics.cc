#include "daemon/diagnostics.h"

#include <limits>
#include <utility>

namespace weir {

namespace {

constexpr std::size_t kLongestShown = 80;

std::string parent(const std::string& path) {
  std::size_t end = path.find_last_of(".[");
  return end == std::string::npos ? "" : path.substr(0, end);
}

std::string render(const Origin& origin, const std::string& path, const std::string& what) {
  std::string field = path.empty() ? "" : path + ": ";
  if (origin.source.empty()) return field + what;
  if (origin.line == 0) return origin.source + ": " + what;
  return origin.source + ":" + std::to_string(origin.line) + ": " + field + what;
}

}  // namespace

void Diagnostics::locate(const std::string& path, Origin origin) {
  origins_[path] = std::move(origin);
}

void Diagnostics::fail(const std::string& path, const std::string& what) {
  std::string place = path;
  while (!given(place)) place = parent(place);
  fail_at(origins_.at(place), path, what);
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

void Diagnostics::require(bool condition, const std::string& path, const std::string& what) {
  if (!condition && good(path)) fail(path, what);
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
