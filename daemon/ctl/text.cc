#include "daemon/ctl/text.h"

#include <algorithm>
#include <cmath>

namespace weir::ctl {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

void pad(std::string& out, std::size_t count) { out.append(count, ' '); }

}  // namespace

std::string harmless(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (byte < 0x20 || byte == 0x7f) {
      out += '?';
    } else if (byte == 0xc2 && next >= 0x80 && next <= 0x9f) {  // U+0080 … U+009F
      out += '?';
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return !continues(c); }));
}

std::string cut_to(std::string_view text, std::size_t width, Glyphs glyphs) {
  if (width_of(text) <= width) return std::string{text};
  if (width == 0) return {};
  std::size_t end = 0;
  for (std::size_t shown = 0; shown < width; ++shown) {  // to where the last that fits begins
    if (shown + 1 == width) break;
    ++end;
    while (end < text.size() && continues(text[end])) ++end;
  }
  return std::string{text.substr(0, end)} + (glyphs == Glyphs::unicode ? "…" : "~");
}

std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = width_of(columns[i].title);
    for (const auto& row : rows) width = std::max(width, width_of(row.at(i)));
    widths.push_back(width);
  }
  std::string out;
  const auto add_cell = [&](std::size_t i, const std::string& cell) {
    const std::size_t blanks = widths[i] - width_of(cell);
    if (columns[i].align == Column::Align::right) pad(out, blanks);
    out += cell;
    if (columns[i].align == Column::Align::left) pad(out, blanks);
    pad(out, 2);
  };
  const auto end_line = [&out] {
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  };
  for (std::size_t i = 0; i < columns.size(); ++i) add_cell(i, columns[i].title);
  end_line();
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) add_cell(i, row[i]);
    end_line();
  }
  return out;
}

std::string bar(std::int64_t part, std::int64_t whole, std::size_t width, Glyphs glyphs) {
  if (width == 0) return {};
  const double share =
      whole > 0 ? std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0) : 0;
  auto full = static_cast<std::size_t>(std::lround(share * static_cast<double>(width)));
  if (part > 0) full = std::max<std::size_t>(full, 1);
  if (part < whole && width > 1) full = std::min(full, width - 1);
  std::string out;
  for (std::size_t i = 0; i < width; ++i) {
    out += i < full ? (glyphs == Glyphs::unicode ? "█" : "#")
                    : (glyphs == Glyphs::unicode ? "░" : ".");
  }
  return out;
}

std::string span_text(std::chrono::seconds span) {
  const std::int64_t s = std::max<std::int64_t>(0, span.count());
  const auto two = [](std::int64_t a, const char* unit, std::int64_t b, const char* rest) {
    std::string text = std::to_string(a) + unit;
    if (b > 0) text += " " + std::to_string(b) + rest;
    return text;
  };
  if (s < 60) return std::to_string(s) + " s";
  if (s < 3'600) return two(s / 60, " min", s % 60, " s");
  if (s < 86'400) return two(s / 3'600, " h", s / 60 % 60, " min");
  return two(s / 86'400, " d", s / 3'600 % 24, " h");
}

}  // namespace weir::ctl
