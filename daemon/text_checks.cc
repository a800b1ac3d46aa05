#include "daemon/text_checks.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "daemon/diagnostics.h"
#include "proxy/forwarded.h"
#include "proxy/path.h"
#include "proxy/route.h"

namespace weir {

namespace {

constexpr std::size_t kLongestName = 253;  // DNS's own bound

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_graphic(char c) { return c > 0x20 && c < 0x7f; }

// A character of an HTTP token.
bool is_token(char c) {
  return is_digit(c) || is_lower(c) || is_upper(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

void lower(std::string& text) {
  for (char& c : text) {
    if (is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
  }
}

bool is_host_name(const std::string& text) {
  if (text.empty() || text.size() > kLongestName) return false;
  bool numeric = std::ranges::all_of(text, [](char c) { return is_digit(c) || c == '.'; });
  if (numeric) return Address::parse(text).has_value();
  return std::ranges::all_of(text, [](char c) {
    return is_digit(c) || is_lower(c) || is_upper(c) || c == '.' || c == '-' || c == '_';
  });
}

std::optional<int> parse_count(std::string_view text, int max) {
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool complete = error == std::errc{} && end == text.data() + text.size();
  if (!complete || number < 0 || number > max) return std::nullopt;
  return number;
}

// `why` as the part of the program says that will use the text.
std::string because(const std::string& why, const std::string& text) {
  return why.empty() ? "" : printable(why) + ", in " + quote(text);
}

}  // namespace

std::optional<HostAndPort> parse_host_port(std::string_view text) {
  HostAndPort result;
  std::string_view port;
  if (text.starts_with('[')) {
    std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    result.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (result.host.find(':') == std::string::npos || !Address::parse(result.host)) {
      return std::nullopt;
    }
  } else {
    std::size_t colon = std::min(text.find(':'), text.size());
    result.host = text.substr(0, colon);
    port = text.substr(colon);
    if (!is_host_name(result.host)) return std::nullopt;
  }
  if (port.empty()) return result;
  auto number = parse_count(port.substr(1), 65535);
  if (port[0] != ':' || !number) return std::nullopt;
  result.port = static_cast<std::uint16_t>(*number);
  return result;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

std::string check_name(std::string& text) {
  bool good = !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || is_lower(c) || c == '_' || c == '-';
  });
  return good ? "" : "must be a name of a-z, 0-9, _ and -, not " + quote(text);
}

std::string check_replica_name(std::string& text) {
  bool good = text.size() <= kLongestName && std::ranges::all_of(text, [](char c) {
                return (is_graphic(c) || c == ' ') && c != '/';
              });
  return good ? "" : "must be at most 253 printable ASCII characters without /, not " + quote(text);
}

std::string check_cidr(std::string& text) {
  if (Cidr::parse(text)) return {};
  return "must be an address or a range as in 10.0.0.0/8, not " + quote(text);
}

std::string check_method(std::string& text) {
  bool good = !text.empty() &&
              std::ranges::all_of(text, [](char c) { return is_token(c) && !is_lower(c); });
  return good ? "" : "must be an HTTP method in upper case, not " + quote(text);
}

std::string check_field_name(std::string& text) {
  if (text.empty() || !std::ranges::all_of(text, is_token)) {
    return "must be the name of an HTTP field, not " + quote(text);
  }
  lower(text);
  return {};
}

std::string check_match_host(std::string& text) {
  if (text.empty()) return {};
  auto address = parse_host_port(text);
  if (!address) return "must be a host name, not " + quote(text);
  if (address->port) return "must be a host name without a port, not " + quote(text);
  lower(text);
  return {};
}

std::string check_path_pattern(std::string& text) {
  return text.empty() ? "" : because(check_pattern(text), text);
}

std::string check_resource(std::string& text) {
  std::string problem = check_printable(text);
  return problem.empty() ? because(check_template(text), text) : problem;
}

std::string check_etcd_endpoint(std::string& text) {
  std::string_view rest = text;
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!rest.starts_with(scheme)) continue;
    rest.remove_prefix(scheme.size());
    std::size_t at = rest.find('@');
    bool graphic = std::ranges::all_of(rest, is_graphic);
    if (at != std::string_view::npos) rest.remove_prefix(at + 1);
    if (rest.ends_with('/')) rest.remove_suffix(1);
    auto address = parse_host_port(rest);
    if (graphic && address && address->port != 0) return {};
    break;
  }
  return "must be a URL as in http://127.0.0.1:2379, not " + quote(mask_userinfo(text));
}

std::string check_key_prefix(std::string& text) {
  bool good = text.size() > 1 && text.starts_with('/') && !text.ends_with('/') &&
              std::ranges::all_of(text, is_graphic);
  return good ? "" : "must be a key as in /weir/v1, not " + quote(text);
}

std::string check_printable(std::string& text) {
  bool good = std::ranges::none_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  return good ? "" : "must not have control characters in it";
}

std::string mask_userinfo(const std::string& url) {
  std::size_t scheme = url.find("://");
  std::size_t start = scheme == std::string::npos ? 0 : scheme + 3;
  std::size_t at = url.find_last_of('@');
  if (at == std::string::npos || at < start) return url;
  return url.substr(0, start) + "***" + url.substr(at);
}

}  // namespace weir
