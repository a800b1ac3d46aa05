#pragma once

// Text for a terminal: what clients made up is made harmless, columns line up, bars have a length.
// Pure. A character counts as one column.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::ctl {

// Control characters, also those beyond ASCII that terminals obey, are replaced by `?`.
std::string harmless(std::string_view text);
// In characters.
std::size_t width_of(std::string_view text);
// At most so many characters; a longer one ends in `…`, or `~` where only ASCII is shown.
enum class Glyphs { ascii, unicode };
std::string cut_to(std::string_view text, std::size_t width, Glyphs glyphs);

struct Column {
  enum class Align { left, right };
  std::string title;
  Align align = Align::left;
};
// A line of titles and one for each row, columns two apart; no blanks at the ends of lines.
std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows);

// `width` characters, as much of them full as `part` is of `whole`; a part that is more than
// nothing shows, and so does what is left.
std::string bar(std::int64_t part, std::int64_t whole, std::size_t width, Glyphs glyphs);

// "12 s", "3 min 5 s", "2 h 10 min", "4 d 3 h"
std::string span_text(std::chrono::seconds span);

}  // namespace weir::ctl
