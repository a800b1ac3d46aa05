#include "proxy/http/field.h"

#include <array>

namespace weir::http {
namespace {

struct Name {
  std::string_view text;
  Known known;
};

constexpr std::array kNames{
    Name{"te", Known::te},
    Name{"via", Known::via},
    Name{"date", Known::date},
    Name{"host", Known::host},
    Name{"expect", Known::expect},
    Name{"trailer", Known::trailer},
    Name{"upgrade", Known::upgrade},
    Name{"ratelimit", Known::rate_limit},
    Name{"connection", Known::connection},
    Name{"keep-alive", Known::keep_alive},
    Name{"authorization", Known::authorization},
    Name{"content-length", Known::content_length},
    Name{"weir-waited-ms", Known::weir_waited_ms},
    Name{"http2-settings", Known::http2_settings},
    Name{"x-forwarded-for", Known::x_forwarded_for},
    Name{"ratelimit-policy", Known::rate_limit},
    Name{"proxy-connection", Known::proxy_connection},
    Name{"x-forwarded-host", Known::x_forwarded_host},
    Name{"x-ratelimit-limit", Known::x_rate_limit},
    Name{"x-ratelimit-reset", Known::x_rate_limit},
    Name{"transfer-encoding", Known::transfer_encoding},
    Name{"x-forwarded-proto", Known::x_forwarded_proto},
    Name{"proxy-authenticate", Known::proxy_authenticate},
    Name{"proxy-authorization", Known::proxy_authorization},
    Name{"x-ratelimit-remaining", Known::x_rate_limit},
    Name{"grpc-previous-rpc-attempts", Known::grpc_previous_attempts},
};

// Where the names of each length begin in kNames, which is sorted by length: most names that come
// in are told apart by their length and first letter alone.
constexpr std::size_t kLongest = 26;
constexpr auto kFirstOfLength = [] {
  std::array<unsigned char, kLongest + 2> first{};
  for (std::size_t length = 0; length < first.size(); ++length) {
    unsigned char i = 0;
    while (i < kNames.size() && kNames[i].text.size() < length) ++i;
    first[length] = i;
  }
  return first;
}();

}  // namespace

Known known_field(std::string_view name) {
  if (name.size() > kLongest) return Known::other;
  for (auto i = kFirstOfLength[name.size()]; i < kFirstOfLength[name.size() + 1]; ++i) {
    if (lower_case(name.front()) != kNames[i].text.front()) continue;
    if (equal_ignoring_case(kNames[i].text, name)) return kNames[i].known;
  }
  return Known::other;
}

}  // namespace weir::http
