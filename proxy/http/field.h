#pragma once

// One header field of a message: views into the head that holds it.

#include <cstddef>
#include <string_view>

namespace weir::http {

// Fields that the proxy itself reads, drops or re-makes; every other field is passed on as it came.
enum class Known : unsigned char {
  other,
  authorization,
  connection,
  content_length,
  date,
  expect,
  grpc_previous_attempts,
  host,
  http2_settings,
  keep_alive,
  proxy_authenticate,
  proxy_authorization,
  proxy_connection,
  rate_limit,  // and RateLimit-Policy
  te,
  trailer,
  transfer_encoding,
  upgrade,
  via,
  weir_waited_ms,
  x_forwarded_for,
  x_forwarded_host,
  x_forwarded_proto,
  x_rate_limit,  // X-RateLimit-Limit, -Remaining and -Reset
};

struct Field {
  std::string_view name, value;
  Known known = Known::other;
};

// What the name means to the proxy; letter case does not matter.
Known known_field(std::string_view name);

// ASCII only, as field names and host names are; independent of any locale.
constexpr char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower_case(a[i]) != lower_case(b[i])) return false;
  }
  return true;
}

// Calls `visit` with each element of a comma-separated list, until it returns true.
template <class Visit>
bool any_element(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view element = list.substr(0, comma);
    list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
    while (!element.empty() && (element.front() == ' ' || element.front() == '\t')) {
      element.remove_prefix(1);
    }
    while (!element.empty() && (element.back() == ' ' || element.back() == '\t')) {
      element.remove_suffix(1);
    }
    if (!element.empty() && visit(element)) return true;
  }
  return false;
}

}  // namespace weir::http
