#pragma once

// What makes a text in the configuration well formed: names, addresses, patterns, templates. Pure
// functions. A check returns what is wrong, empty if nothing is, and brings the text into the form
// that is kept (host and field names in lower case).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

struct HostAndPort {
  std::string host;                   // an IPv6 address without its brackets
  std::optional<std::uint16_t> port;  // nothing if none was given
};

// `host[:port]` with a name, an IPv4 address or an IPv6 address in brackets.
std::optional<HostAndPort> parse_host_port(std::string_view text);

// An IPv6 address in brackets, anything else as it is.
std::string bracketed(const std::string& host);

std::string check_name(std::string& text);          // of a rule or an upstream
std::string check_replica_name(std::string& text);  // may be empty
std::string check_cidr(std::string& text);          // or a bare address
std::string check_method(std::string& text);
std::string check_field_name(std::string& text);    // an HTTP field's
std::string check_match_host(std::string& text);    // may be empty
std::string check_path_pattern(std::string& text);  // may be empty
std::string check_resource(std::string& text);      // a template
std::string check_etcd_endpoint(std::string& text);
std::string check_key_prefix(std::string& text);
std::string check_printable(std::string& text);  // anything but control characters

// A URL without what may be secret in it: http://user:password@host becomes http://***@host.
std::string mask_userinfo(const std::string& url);

}  // namespace weir
