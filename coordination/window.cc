#include "coordination/window.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace weir {

using std::chrono::ceil;
using std::chrono::floor;
using std::chrono::milliseconds;
using std::chrono::seconds;

Window window_at(WallTime now, seconds length) {
  const seconds since_epoch = floor<seconds>(now.time_since_epoch());
  seconds into = since_epoch % length;
  if (into < seconds{0}) into += length;
  return {WallTime{since_epoch - into}, length};
}

seconds seconds_until(WallTime until, WallTime now) {
  return until <= now ? seconds{0} : ceil<seconds>(until - now);
}

namespace {

std::size_t print(WallTime time, std::array<char, 40>& text) {
  const std::time_t whole = floor<seconds>(time.time_since_epoch()).count();
  std::tm utc{};
  gmtime_r(&whole, &utc);
  return std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
}

}  // namespace

std::string utc_text(WallTime time) {
  std::array<char, 40> text;
  const std::size_t length = print(time, text);
  return std::string(text.data(), length) + "Z";
}

std::string utc_text_ms(WallTime time) {
  std::array<char, 40> text;
  const std::size_t length = print(time, text);
  const auto ms = floor<milliseconds>(time.time_since_epoch()) % seconds{1};
  std::array<char, 8> fraction;
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ",
                static_cast<int>((ms.count() + 1000) % 1000));
  return std::string(text.data(), length) + fraction.data();
}

std::optional<WallTime> parse_utc(std::string_view text) {
  std::tm utc{};
  const std::string copy{text};
  const char* end = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (!end) return std::nullopt;
  int thousandths = 0, length = 0;
  if (std::sscanf(end, ".%3dZ%n", &thousandths, &length) == 1 && length == 5) end += 4;
  if (std::string_view{end} != "Z") return std::nullopt;
  return WallTime{seconds{timegm(&utc)} + milliseconds{thousandths}};
}

}  // namespace weir
