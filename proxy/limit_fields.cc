#include "proxy/limit_fields.h"

#include <array>
#include <charconv>

namespace weir {
namespace {

void append_number(std::string& out, std::string_view before, std::int64_t value) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(before).append(digits.data(), end);
}

void append_ietf(std::string& out, const LimitFacts& facts) {
  out.append("RateLimit-Policy: \"").append(facts.rule);
  append_number(out, "\";q=", facts.limit.units);
  if (facts.limit.mode == Mode::in_flight) {
    out.append(";qu=\"concurrent-requests\"");
  } else {
    append_number(out, ";w=", facts.limit.window.count());
  }
  out.append("\r\nRateLimit: \"").append(facts.rule);
  append_number(out, "\";r=", facts.standing.left);
  if (facts.standing.more_in) append_number(out, ";t=", facts.standing.more_in->count());
  out.append("\r\n");
}

void append_legacy(std::string& out, const LimitFacts& facts) {
  append_number(out, "X-RateLimit-Limit: ", facts.limit.units);
  append_number(out, "\r\nX-RateLimit-Remaining: ", facts.standing.left);
  if (facts.standing.more_in) {
    append_number(out, "\r\nX-RateLimit-Reset: ", facts.standing.more_in->count());
  }
  out.append("\r\n");
}

}  // namespace

void append_limit_fields(std::string& out, LimitHeaders style, const LimitFacts& facts) {
  if (style == LimitHeaders::off) return;
  style == LimitHeaders::ietf ? append_ietf(out, facts) : append_legacy(out, facts);
  if (facts.waited.count() > 0) {
    append_number(out, "Weir-Waited-Ms: ", facts.waited.count());
    out.append("\r\n");
  }
}

}  // namespace weir
