#include "daemon/values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "daemon/diagnostics.h"
#include "daemon/text_checks.h"

namespace weir {

namespace {

using std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  milliseconds length;
};

// The longest first, for writing.
constexpr std::array<Unit, 4> kUnits{{{"h", milliseconds{3'600'000}},
                                      {"m", milliseconds{60'000}},
                                      {"s", milliseconds{1'000}},
                                      {"ms", milliseconds{1}}}};

Problem must_be(const std::string& wanted, const Scalar& scalar) {
  return "must be " + wanted + ", not " + quote(scalar.text);
}

template <typename T>
std::optional<T> whole(std::string_view text) {
  T number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Decimal digits with at most one point among them.
bool is_decimal(std::string_view text) {
  std::size_t point = text.find('.');
  if (point == 0 || point == text.size() - 1) return false;
  return text.find_first_not_of("0123456789.") == std::string_view::npos &&
         text.find('.', point == std::string_view::npos ? point : point + 1) ==
             std::string_view::npos;
}

// Only for bounds, which fit.
std::string format_double(double value) {
  std::array<char, 32> buffer;
  auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed)
          .ptr;
  return {buffer.data(), end};
}

std::string format_duration(milliseconds value) {
  if (value == milliseconds::zero()) return "0s";
  for (const Unit& unit : kUnits) {
    if (value % unit.length == milliseconds::zero()) {
      return std::to_string(value / unit.length) + std::string(unit.name);
    }
  }
  return "";
}

// Nothing if it is no duration, too long for any use, or not whole milliseconds.
std::optional<milliseconds> parse_duration(std::string_view text) {
  std::size_t digits = text.find_first_not_of("0123456789.");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  std::string_view number = text.substr(0, digits);
  std::string_view name = text.substr(digits);
  auto amount = is_decimal(number) ? whole<double>(number) : std::nullopt;
  if (!amount) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    double ms = *amount * static_cast<double>(unit.length.count());
    // Products such as 4.35 * 1000 miss the whole number by the last bit.
    if (ms > 1e12 || std::abs(ms - std::round(ms)) > 1e-6) return std::nullopt;
    return milliseconds{std::llround(ms)};
  }
  return std::nullopt;
}

}  // namespace

Problem Flag::read(const Scalar& scalar, bool& value) const {
  if (scalar.quoted || (scalar.text != "true" && scalar.text != "false")) {
    return must_be(wanted(), scalar);
  }
  value = scalar.text == "true";
  return {};
}

std::string Integer::wanted() const {
  return "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
}

Problem Integer::read_number(const Scalar& scalar, std::int64_t& value) const {
  // YAML's versions disagree on whether 010 is eight.
  bool octal = scalar.text.size() > 1 && scalar.text[0] == '0';
  auto number = whole<std::int64_t>(scalar.text);
  if (scalar.quoted || octal || !number || *number < min || *number > max) {
    return must_be(wanted(), scalar);
  }
  value = *number;
  return {};
}

std::string Number::wanted() const {
  if (ends == Ends::excluded) {
    return "a number above " + format_double(min) + " and below " + format_double(max);
  }
  return "a number from " + format_double(min) + " to " + format_double(max);
}

Problem Number::read(const Scalar& scalar, double& value) const {
  // from_chars also reads "inf" and "nan".
  bool numeric = scalar.text.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  auto number = numeric && !scalar.quoted ? whole<double>(scalar.text) : std::nullopt;
  bool at_end = number && ends == Ends::excluded && (*number == min || *number == max);
  if (!number || at_end || *number < min || *number > max) return must_be(wanted(), scalar);
  value = *number;
  return {};
}

std::string Duration::wanted() const {
  return "a duration from " + format_duration(min) + " to " + format_duration(max);
}

Problem Duration::read(const Scalar& scalar, milliseconds& value) const {
  auto duration = parse_duration(scalar.text);
  if (!duration || *duration < min || *duration > max) return must_be(wanted(), scalar);
  value = *duration;
  return {};
}

Shown Duration::show(milliseconds value) const { return format_duration(value); }

std::string WholeSeconds::wanted() const {
  return "whole seconds from " + format_duration(min) + " to " + format_duration(max);
}

Problem WholeSeconds::read(const Scalar& scalar, std::chrono::seconds& value) const {
  auto duration = parse_duration(scalar.text);
  if (!duration || *duration < min || *duration > max ||
      *duration % std::chrono::seconds{1} != milliseconds::zero()) {
    return must_be(wanted(), scalar);
  }
  value = std::chrono::duration_cast<std::chrono::seconds>(*duration);
  return {};
}

Shown WholeSeconds::show(std::chrono::seconds value) const { return format_duration(value); }

std::string Patience::wanted() const {
  return "forever or " + Duration{milliseconds::zero(), max}.wanted();
}

Problem Patience::read(const Scalar& scalar, std::optional<milliseconds>& value) const {
  if (scalar.text == "forever") {
    value.reset();
    return {};
  }
  milliseconds duration{};
  if (!Duration{milliseconds::zero(), max}.read(scalar, duration).empty()) {
    return must_be(wanted(), scalar);
  }
  value = duration;
  return {};
}

Shown Patience::show(const std::optional<milliseconds>& value) const {
  return value ? format_duration(*value) : "forever";
}

std::string Choice::wanted() const {
  std::string list(names_.front());
  for (std::size_t i = 1; i < names_.size(); ++i) {
    list += i + 1 < names_.size() ? ", " : " or ";
    list += names_[i];
  }
  return list;
}

Problem Choice::unknown(const Scalar& scalar) const { return must_be(wanted(), scalar); }

Problem Text::read(const Scalar& scalar, std::string& value) const {
  std::string text(scalar.text);
  Problem problem = check(text);
  if (problem.empty()) value = std::move(text);
  return problem;
}

Problem HostPort::read(const Scalar& scalar, ServerAddress& value) const {
  auto address = parse_host_port(scalar.text);
  if (!address || !address->port) return must_be(wanted(), scalar);
  value = {address->host, *address->port};
  return {};
}

Shown HostPort::show(const ServerAddress& value) const { return value.authority(); }

Problem ServerUrl::read(const Scalar& scalar, ServerAddress& value) const {
  std::string_view rest = scalar.text;
  if (rest.starts_with("https://")) return "only http:// is supported, not " + quote(rest);
  if (!rest.starts_with("http://")) return must_be(wanted(), scalar);
  rest.remove_prefix(std::string_view("http://").size());
  if (rest.find('@') != std::string_view::npos) {
    return "must not have a user name or a password in it";
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != std::string_view::npos) {
    return "must not have a path or a query: requests keep their own, not " + quote(scalar.text);
  }
  auto address = parse_host_port(rest);
  if (!address || address->port == 0) return must_be(wanted(), scalar);
  value = {address->host, address->port.value_or(80)};
  return {};
}

Shown ServerUrl::show(const ServerAddress& value) const {
  std::string port = value.port == 80 ? "" : ":" + std::to_string(value.port);
  return "http://" + bracketed(value.host) + port;
}

Problem WhoAsks::read(const Scalar& scalar, TenantSource& value) const {
  std::string_view text = scalar.text;
  std::size_t colon = text.find(':');
  std::string_view kind = text.substr(0, colon);
  std::string detail(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  if (text == "client_ip") {
    value = {TenantSource::Kind::client_ip, "", 0};
  } else if (kind == "header" && check_field_name(detail).empty()) {
    value = {TenantSource::Kind::header, detail, 0};
  } else if (int n = 0; kind == "segment" && Integer{1, 1000}.read({detail}, n).empty()) {
    value = {TenantSource::Kind::segment, "", n};
  } else {
    return must_be(wanted(), scalar);
  }
  return {};
}

Shown WhoAsks::show(const TenantSource& value) const {
  switch (value.kind) {
    case TenantSource::Kind::client_ip:
      return "client_ip";
    case TenantSource::Kind::header:
      return "header:" + value.header;
    case TenantSource::Kind::segment:
      return "segment:" + std::to_string(value.segment);
  }
  return "";
}

}  // namespace weir
