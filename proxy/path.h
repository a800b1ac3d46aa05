#pragma once

// One canonical path per request: what is matched and counted is what the upstream gets to see, so
// that no second spelling of a path finds a second allowance. Pure functions without state; any
// thread may call them.
//
// In this order: bytes outside printable ASCII (a space is one), `#` and a malformed `%` are
// refused anywhere in the target; the query is cut off; `%XX` of unreserved characters is decoded,
// once; other escapes are upper-cased and kept; `%00` is refused; `%2F`, `%5C` and `\` are refused
// or kept; runs of `/` are merged; dot segments are removed.
//
// Decisions where the texts leave room:
// - The query is forwarded as sent, empty (`/a?`) or with a `\` or `%00` in it: no rule looks at
// it. A malformed `%`
//   in it is refused, since that check comes before the query is cut off.
// - `;params` end at the next `/`. A segment that is `.` or `..` once they are cut (`/a/..;x/b`,
// also from `%2e`) is
//   refused: Tomcat and its kin cut first and climb, others take it for a name, so whatever we
//   counted, one of them would serve something else. An empty name with params (`/;x/a`) is refused
//   for the same reason, but for the last segment: `/;jsessionid=1` is common and reads `/` either
//   way.
// - `/a;x/../b` is `/b`: the params go with the segment that the dots remove.
// - `%3B` is no `;`: a reserved byte stays as it was sent and starts no params.
// - `%2F`, `%5C` and `\` are, where kept, bytes of a segment like any other and never separate
// segments.
// - `OPTIONS http://host` without path and query is `*` (RFC 9112, 3.2.4); otherwise an empty path
// is `/`.

#include <string>
#include <string_view>
#include <variant>

namespace weir {

enum class EscapedSlashes { reject, keep };

// Views into the target that was given, or into the scratch string if it had to be rewritten.
struct Target {
  std::string_view forward;    // path with its params, and query: the upstream's request target
  std::string_view counted;    // path without params: for matching and counting
  std::string_view authority;  // of an absolute-form target, wins over Host; otherwise empty
};

struct BadTarget {
  std::string_view why;  // a constant text, for the 400
};

using CanonicalTarget = std::variant<Target, BadTarget>;

// Takes origin-form, absolute-form (http or https) and, for OPTIONS, `*`. A target that is
// canonical already is not copied and leaves `scratch` alone; others are built there, and a scratch
// string that is used again soon allocates no more.
CanonicalTarget canonical_target(std::string_view method, std::string_view target,
                                 EscapedSlashes slashes, std::string& scratch);

// host[:port] as a target or a Host field may hold it: a name of letters, digits and `-._`, an IPv4
// address or an IPv6 address in brackets; a port of 0 … 65535. No userinfo, no escapes, nothing
// empty.
bool valid_authority(std::string_view authority);

// The host of a valid authority: without its port and without the dot that may end a full name,
// case as sent.
std::string_view host_of(std::string_view authority);

// Takes the first segment off a path that begins with a slash; the rest is empty or does so too.
std::string_view take_segment(std::string_view& path);

// A pattern for canonical paths, brought into canonical form itself. `*` is one segment that is not
// empty; `**`, at the end, is any rest or none: `/a/**` matches `/a`, `/a/` and all below, `/a/*`
// matches `/a/b` but not `/a/` or `/a/b/`.
// `*` within a segment (`/*.js`), `**` elsewhere, a query and params are errors, not literals: they
// would never match what they seem to say. The target `*` of OPTIONS is no path and matches no
// pattern.
class PathPattern {
 public:
  explicit PathPattern(std::string_view text);  // throws std::invalid_argument
  bool matches(std::string_view path) const;
  const std::string& text() const { return text_; }  // without the final `/**`

  enum class Rest { nothing, anything };
  Rest rest() const { return rest_; }

 private:
  std::string text_;
  Rest rest_ = Rest::nothing;
};

// What is wrong with a pattern, for the configuration's errors; empty if nothing is.
std::string check_pattern(std::string_view pattern);

}  // namespace weir
