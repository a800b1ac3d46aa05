#include "proxy/limit_fields.h"

#include "proxy/http/writer.h"

namespace weir {
namespace {

using http::Writer;

void put_ietf(Writer& out, const LimitFacts& facts) {
  out.put("RateLimit-Policy: \"", facts.rule, "\";q=", facts.limit.units);
  if (facts.limit.mode == Mode::in_flight) {
    out.put(";qu=\"concurrent-requests\"");
  } else {
    out.put(";w=", std::int64_t{facts.limit.window.count()});
  }
  out.put("\r\nRateLimit: \"", facts.rule, "\";r=", facts.standing.left);
  if (facts.standing.more_in) out.put(";t=", std::int64_t{facts.standing.more_in->count()});
  out.put("\r\n");
}

void put_legacy(Writer& out, const LimitFacts& facts) {
  out.put("X-RateLimit-Limit: ", facts.limit.units, "\r\n");
  out.put("X-RateLimit-Remaining: ", facts.standing.left, "\r\n");
  if (facts.standing.more_in) {
    out.put("X-RateLimit-Reset: ", std::int64_t{facts.standing.more_in->count()}, "\r\n");
  }
}

}  // namespace

void append_limit_fields(std::string& text, LimitHeaders style, const LimitFacts& facts) {
  if (style == LimitHeaders::off) return;
  Writer out(text);
  style == LimitHeaders::ietf ? put_ietf(out, facts) : put_legacy(out, facts);
  if (facts.waited.count() > 0) {
    out.put("Weir-Waited-Ms: ", std::int64_t{facts.waited.count()}, "\r\n");
  }
}

}  // namespace weir
