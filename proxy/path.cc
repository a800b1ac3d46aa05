#include "proxy/path.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "proxy/forwarded.h"
#include "proxy/http/field.h"

namespace weir {
namespace {

enum class Byte : std::uint8_t {
  bad,        // never part of a target
  plain,      // means itself anywhere
  slash,      // begins a segment
  percent,    // begins an escape
  question,   // begins the query
  backslash,  // a separator to some upstreams
  semicolon,  // begins params
};

constexpr bool is_alphanumeric(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr bool is_unreserved(unsigned char c) {
  return is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

constexpr auto bytes = [] {
  std::array<Byte, 256> table{};
  for (int c = 0x21; c <= 0x7e; ++c) table[c] = Byte::plain;
  table['#'] = Byte::bad;
  table['/'] = Byte::slash;
  table['%'] = Byte::percent;
  table['?'] = Byte::question;
  table['\\'] = Byte::backslash;
  table[';'] = Byte::semicolon;
  return table;
}();

constexpr Byte byte_of(char c) { return bytes[static_cast<unsigned char>(c)]; }

constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The byte that the escape at `at` stands for, or a negative number if it is malformed.
int escaped(std::string_view text, std::size_t at) {
  if (text.size() - at < 3) return -1;
  const int high = hex_digit(text[at + 1]);
  const int low = hex_digit(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool well_formed(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const Byte byte = byte_of(text[i]);
    if (byte == Byte::plain) continue;
    if (byte == Byte::bad || (byte == Byte::percent && escaped(text, i) < 0)) return false;
  }
  return true;
}

bool is_slash(int byte) { return byte == '/' || byte == '\\'; }

bool is_canonical_escape(std::string_view text, std::size_t at, EscapedSlashes slashes) {
  const int byte = escaped(text, at);
  if (byte <= 0 || is_unreserved(static_cast<unsigned char>(byte))) return false;
  if (is_slash(byte) && slashes == EscapedSlashes::reject) return false;
  return text[at + 1] < 'a' && text[at + 2] < 'a';
}

// Whether the segment that begins here may stand as it is, as far as its first bytes tell: neither
// empty within the path nor `.` or `..`.
bool may_begin_segment(std::string_view rest) {
  if (rest.empty()) return true;
  if (rest[0] != '.') return rest[0] != '/';
  const std::size_t after = rest.size() > 1 && rest[1] == '.' ? 2 : 1;
  return rest.size() > after && byte_of(rest[after]) != Byte::slash &&
         byte_of(rest[after]) != Byte::question;
}

// The length of the path in front of the query if nothing needs rewriting: the one pass that most
// requests take. Says nothing about why not; the slow path finds out.
std::optional<std::size_t> canonical_length(std::string_view target, EscapedSlashes slashes) {
  if (target.empty() || target[0] != '/') return std::nullopt;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const Byte byte = byte_of(target[i]);
    if (byte == Byte::plain) continue;
    switch (byte) {
      case Byte::slash:
        if (!may_begin_segment(target.substr(i + 1))) return std::nullopt;
        break;
      case Byte::percent:
        if (!is_canonical_escape(target, i, slashes)) return std::nullopt;
        i += 2;
        break;
      case Byte::backslash:
        if (slashes == EscapedSlashes::reject) return std::nullopt;
        break;
      case Byte::question:
        if (!well_formed(target.substr(i + 1))) return std::nullopt;
        return i;
      default:
        return std::nullopt;
    }
  }
  return target.size();
}

// Each step of the slow path gives nothing if it succeeds.
using Refusal = std::optional<BadTarget>;

// Writes `path` to `out` with its escapes in canonical form and moves `out` to the end.
Refusal normalise_escapes(std::string_view path, EscapedSlashes slashes, char*& out) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (std::size_t i = 0; i < path.size(); ++i) {
    const Byte kind = byte_of(path[i]);
    const int byte = kind == Byte::percent ? escaped(path, i) : path[i];
    if (byte == 0) return BadTarget{"%00 in the path"};
    if (is_slash(byte) && kind != Byte::slash && slashes == EscapedSlashes::reject) {
      return BadTarget{"an escaped slash or a backslash in the path"};
    }
    if (kind != Byte::percent || is_unreserved(static_cast<unsigned char>(byte))) {
      *out++ = static_cast<char>(byte);
    } else {
      *out++ = '%';
      *out++ = digits[byte >> 4];
      *out++ = digits[byte & 15];
    }
    if (kind == Byte::percent) i += 2;
  }
  return std::nullopt;
}

std::string_view without_params(std::string_view segment) {
  return segment.substr(0, segment.find(';'));
}

bool is_dots(std::string_view name) { return name == "." || name == ".."; }

// Merges slashes and removes dot segments in place, which can only shorten, and moves `end`. What
// is kept is always `/segment` each, so that climbing means cutting at the last slash.
Refusal resolve_segments(char* begin, char*& end) {
  const std::string_view path(begin, end);
  std::size_t kept = 0;
  bool open = true;  // the path ends in a slash
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t start = std::min(path.find_first_not_of('/', at), path.size());
    at = std::min(path.find('/', start), path.size());
    const std::string_view segment = path.substr(start, at - start);
    const std::string_view name = without_params(segment);
    open = segment.empty() || is_dots(segment);
    if (segment == "..") {
      if (kept == 0) return BadTarget{"the path climbs above the root"};
      kept = path.substr(0, kept).rfind('/');
    } else if (!open) {
      if (is_dots(name)) return BadTarget{"a dot segment with params"};
      if (name.empty() && at < path.size()) return BadTarget{"params without a segment"};
      begin[kept++] = '/';
      std::memmove(begin + kept, segment.data(), segment.size());
      kept += segment.size();
    }
  }
  if (open) begin[kept++] = '/';
  end = begin + kept;
  return std::nullopt;
}

// Writes `path` to `out` without params and moves `out` to the end.
void cut_params(std::string_view path, char*& out) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t params = std::min(path.find(';', at), path.size());
    std::memcpy(out, path.data() + at, params - at);
    out += params - at;
    at = std::min(path.find('/', params), path.size());
  }
}

// The rules one after the other, for a target that is not canonical as it stands.
CanonicalTarget rewrite(std::string_view target, EscapedSlashes slashes, std::string& scratch) {
  if (!well_formed(target)) return BadTarget{"a byte or an escape that no target may hold"};
  const std::size_t query_at = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, query_at);
  const std::string_view query = target.substr(query_at);
  if (!path.empty() && path[0] != '/')
    return BadTarget{"a target that does not begin with a slash"};

  scratch.resize(2 * (target.size() + 1));  // forward, then counted; the slash may be new
  char* const begin = scratch.data();
  char* end = begin;
  if (const Refusal refusal = normalise_escapes(path, slashes, end)) return *refusal;
  if (const Refusal refusal = resolve_segments(begin, end)) return *refusal;
  const std::string_view resolved(begin, end);
  query.copy(end, query.size());
  end += query.size();

  Target result{.forward = {begin, end}, .counted = resolved, .authority = {}};
  if (resolved.find(';') != std::string_view::npos) {
    char* const counted = end;
    cut_params(resolved, end);
    result.counted = {counted, end};
  }
  return result;
}

CanonicalTarget canonical_origin(std::string_view target, EscapedSlashes slashes,
                                 std::string& scratch) {
  if (const auto length = canonical_length(target, slashes)) {
    return Target{.forward = target, .counted = target.substr(0, *length), .authority = {}};
  }
  return rewrite(target, slashes, scratch);
}

// How long `http://` or `https://` is at the front of the target; 0 if it is neither.
std::size_t scheme_length(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (http::equal_ignoring_case(target.substr(0, scheme.size()), scheme)) return scheme.size();
  }
  return 0;
}

bool valid_port(std::string_view port) {
  if (port.empty() || port.size() > 5) return false;
  int value = 0;
  for (const char c : port) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  return value <= 65535;
}

bool valid_name(std::string_view host) {
  if (host.empty()) return false;
  for (const char c : host) {
    if (!is_unreserved(static_cast<unsigned char>(c)) || c == '~') return false;
  }
  return true;
}

// Where the host ends and `:port`, if any, begins.
std::size_t host_length(std::string_view authority) {
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  return bracket == std::string_view::npos
             ? authority.size()
             : std::min(authority.find(':', bracket), authority.size());
}

}  // namespace

CanonicalTarget canonical_target(std::string_view method, std::string_view target,
                                 EscapedSlashes slashes, std::string& scratch) {
  if (target.starts_with('/')) return canonical_origin(target, slashes, scratch);
  constexpr Target asterisk{.forward = "*", .counted = "*", .authority = {}};
  if (target == "*" && method == "OPTIONS") return asterisk;

  const std::size_t scheme = scheme_length(target);
  if (scheme == 0) return BadTarget{"a target that is neither a path nor an http URL"};
  const std::string_view rest = target.substr(scheme);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  if (!valid_authority(authority)) return BadTarget{"an authority that is not host[:port]"};

  const std::string_view origin = rest.substr(authority.size());
  CanonicalTarget result =
      origin.empty() && method == "OPTIONS" ? asterisk : canonical_origin(origin, slashes, scratch);
  if (auto* good = std::get_if<Target>(&result)) good->authority = authority;
  return result;
}

bool valid_authority(std::string_view authority) {
  const std::size_t length = host_length(authority);
  const std::string_view host = authority.substr(0, length);
  if (length < authority.size() && !valid_port(authority.substr(length + 1))) return false;
  if (!host.starts_with('[')) return valid_name(host);
  const std::string_view literal = host.substr(1, host.size() - 2);
  return host.ends_with(']') && literal.find(':') != std::string_view::npos &&
         Address::parse(literal);
}

std::string_view host_of(std::string_view authority) {
  std::string_view host = authority.substr(0, host_length(authority));
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  return host;
}

std::string_view take_segment(std::string_view& path) {
  const std::size_t end = std::min(path.find('/', 1), path.size());
  const std::string_view segment = path.substr(1, end - 1);
  path.remove_prefix(end);
  return segment;
}

PathPattern::PathPattern(std::string_view text) {
  if (!text.starts_with('/')) throw std::invalid_argument("a path begins with a slash");
  if (text.find_first_of("?;") != std::string_view::npos) {
    throw std::invalid_argument("neither query nor params are matched");
  }
  std::string scratch;
  const auto canonical = canonical_target("GET", text, EscapedSlashes::keep, scratch);
  if (const auto* bad = std::get_if<BadTarget>(&canonical)) {
    throw std::invalid_argument(std::string(bad->why));
  }
  text_ = std::get<Target>(canonical).counted;
  if (text_.ends_with("/**")) {
    text_.resize(text_.size() - 3);
    rest_ = Rest::anything;
  }
  for (std::string_view path = text_; !path.empty();) {
    const std::string_view segment = take_segment(path);
    if (segment == "**") throw std::invalid_argument("`**` stands only at the end");
    if (segment != "*" && segment.find('*') != std::string_view::npos) {
      throw std::invalid_argument("`*` stands only for a whole segment");
    }
  }
}

bool PathPattern::matches(std::string_view path) const {
  if (!path.starts_with('/')) return false;
  for (std::string_view pattern = text_; !pattern.empty();) {
    if (path.empty()) return false;
    const std::string_view wanted = take_segment(pattern);
    const std::string_view segment = take_segment(path);
    if (wanted == "*" ? segment.empty() : wanted != segment) return false;
  }
  return path.empty() || rest_ == Rest::anything;
}

std::string check_pattern(std::string_view pattern) try {
  [[maybe_unused]] const PathPattern sound{pattern};
  return {};
} catch (const std::invalid_argument& error) {
  return error.what();
}

}  // namespace weir
