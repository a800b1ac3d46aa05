#include "proxy/attempt/pushback.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Found {
  std::size_t count = 0;
  std::string_view value;  // the last one
};

Found find(std::span<const http::Field> fields, std::string_view name) {
  Found found;
  for (const http::Field& field : fields) {
    if (!http::equal_ignoring_case(field.name, name)) continue;
    ++found.count;
    found.value = field.value;
  }
  return found;
}

Pushback read_milliseconds(std::string_view text) {
  std::int32_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool written_so = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() &&
                          std::to_string(number) == text;
  if (!written_so || number < 0) return {Pushback::Kind::stop};
  return {Pushback::Kind::delay, milliseconds{number}};
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<WallTime> read_date(const std::string& text) {
  for (const char* format :
       {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"}) {
    std::tm utc{};
    const char* end = ::strptime(text.c_str(), format, &utc);
    if (end && *end == '\0') return std::chrono::system_clock::from_time_t(::timegm(&utc));
  }
  return std::nullopt;
}

std::optional<milliseconds> parse_retry_after(std::string_view text, WallTime now) {
  constexpr milliseconds kMost{std::numeric_limits<std::int32_t>::max()};
  if (all_digits(text)) {
    std::int64_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool beyond = parsed.ec != std::errc{} || number > kMost / seconds{1};
    return beyond ? kMost : milliseconds{seconds{number}};
  }
  const auto date = read_date(std::string{text});
  if (!date) return std::nullopt;
  return std::clamp(std::chrono::ceil<milliseconds>(*date - now), milliseconds{0}, kMost);
}

}  // namespace

std::optional<milliseconds> read_retry_after(std::span<const http::Field> fields, WallTime now) {
  const Found found = find(fields, "retry-after");
  return found.count == 1 ? parse_retry_after(found.value, now) : std::nullopt;
}

Pushback read_pushback(int http_status, std::span<const http::Field> fields, WallTime now) {
  if (const Found grpc = find(fields, "grpc-retry-pushback-ms"); grpc.count > 0) {
    return grpc.count == 1 ? read_milliseconds(grpc.value) : Pushback{Pushback::Kind::stop};
  }
  if (http_status != 429 && http_status != 503) return {};
  const auto retry_after = read_retry_after(fields, now);
  return retry_after ? Pushback{Pushback::Kind::delay, *retry_after} : Pushback{};
}

}  // namespace weir
