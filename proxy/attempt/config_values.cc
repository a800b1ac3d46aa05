#include "proxy/attempt/config_values.h"

#include <charconv>
#include <string>
#include <string_view>

namespace weir {
namespace {

constexpr std::int64_t kMostSeconds = 315'576'000'000;  // proto's: ten thousand years
constexpr std::int64_t kLongest = 3'000'000'000;        // seconds that nanoseconds can hold
constexpr std::size_t kMostDigits = 9;                  // behind the point

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<std::int64_t> read_whole(std::string_view digits) {
  std::int64_t number = 0;
  if (!all_digits(digits) || (digits.size() > 1 && digits.front() == '0')) return std::nullopt;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return number;
}

// The first `places` digits behind a point, as a whole number.
std::int64_t fraction(std::string_view digits, std::size_t places) {
  std::int64_t number = 0;
  for (std::size_t i = 0; i < places; ++i) {
    number = number * 10 + (i < digits.size() ? digits[i] - '0' : 0);
  }
  return number;
}

}  // namespace

std::optional<std::chrono::nanoseconds> read_proto_duration(const nlohmann::json& value) {
  if (!value.is_string()) return std::nullopt;
  std::string_view text = value.get_ref<const std::string&>();
  if (!text.ends_with('s')) return std::nullopt;
  text.remove_suffix(1);
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t point = std::min(text.find('.'), text.size());
  const auto seconds = read_whole(text.substr(0, point));
  if (!seconds || *seconds > kMostSeconds) return std::nullopt;
  std::int64_t nanoseconds = 0;
  if (point < text.size()) {
    const std::string_view digits = text.substr(point + 1);
    if (!all_digits(digits) || digits.size() > kMostDigits) return std::nullopt;
    nanoseconds = fraction(digits, kMostDigits);
  }
  const std::chrono::nanoseconds duration =
      std::chrono::seconds{std::min(*seconds, kLongest)} + std::chrono::nanoseconds{nanoseconds};
  return negative ? -duration : duration;
}

std::optional<std::int64_t> read_thousandths(const nlohmann::json& value) {
  constexpr double kMost = 1e12;
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  if (!(number > -kMost && number < kMost)) return std::nullopt;
  std::string text = value.dump();
  if (text.find('e') != std::string::npos) return static_cast<std::int64_t>(number * 1000);
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  std::int64_t thousandths = read_whole(digits.substr(0, point)).value_or(0) * 1000;
  if (point < digits.size()) thousandths += fraction(digits.substr(point + 1), 3);
  return negative ? -thousandths : thousandths;
}

bool add_status(const nlohmann::json& value, StatusSet& to) {
  if (value.is_string()) {
    const auto code = status_code_named(value.get_ref<const std::string&>());
    if (!code || *code == StatusCode::ok) return false;
    to.add(*code);
    return true;
  }
  if (!value.is_number_integer()) return false;
  const auto number = value.get<std::int64_t>();
  if (number > 0 && number < kStatusCodes) {
    to.add(static_cast<StatusCode>(number));
  } else if (number >= StatusSet::kFirstHttp && number <= StatusSet::kLastHttp) {
    to.add_http(static_cast<int>(number));
  } else {
    return false;
  }
  return true;
}

}  // namespace weir
