#include "proxy/attempt/status_code.h"

#include <array>
#include <charconv>

namespace weir {
namespace {

constexpr std::array<std::string_view, kStatusCodes> kNames{
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

StatusCode code_of_http(int status) {
  if (status < 400) return StatusCode::ok;
  switch (status) {
    case 400:
      return StatusCode::internal;
    case 401:
      return StatusCode::unauthenticated;
    case 403:
      return StatusCode::permission_denied;
    case 404:
      return StatusCode::unimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return StatusCode::unavailable;
    default:
      return StatusCode::unknown;
  }
}

StatusCode code_of_text(std::string_view text) {
  int number = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool known = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() &&
                     number >= 0 && number < kStatusCodes;
  return known ? static_cast<StatusCode>(number) : StatusCode::unknown;
}

}  // namespace

std::optional<StatusCode> status_code_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (http::equal_ignoring_case(kNames[i], name)) return static_cast<StatusCode>(i);
  }
  return std::nullopt;
}

Outcome outcome_of_answer(int http_status, std::span<const http::Field> fields) {
  const http::Field* found = nullptr;
  for (const http::Field& field : fields) {
    if (!http::equal_ignoring_case(field.name, "grpc-status")) continue;
    if (found) return {StatusCode::unknown, http_status};  // who is to say which one counts
    found = &field;
  }
  return {found ? code_of_text(found->value) : code_of_http(http_status), http_status};
}

Load load_of(const Outcome& outcome) {
  if (outcome.code == StatusCode::ok) return Load::borne;
  const bool by_http = outcome.http_status == 429 || outcome.http_status == 503;
  // gRPC says it beside a status that is good.
  const bool by_grpc =
      outcome.http_status > 0 && outcome.http_status < 400 &&
      (outcome.code == StatusCode::unavailable || outcome.code == StatusCode::resource_exhausted);
  const bool timed_out = outcome.http_status == 0 && outcome.code == StatusCode::deadline_exceeded;
  return by_http || by_grpc || timed_out ? Load::too_much : Load::unknown;
}

bool StatusSet::contains(const Outcome& outcome) const {
  if (outcome.code == StatusCode::ok) return false;
  if (codes_.test(static_cast<std::size_t>(outcome.code))) return true;
  return outcome.http_status >= kFirstHttp && outcome.http_status <= kLastHttp &&
         http_.test(static_cast<std::size_t>(outcome.http_status - kFirstHttp));
}

std::vector<std::string> StatusSet::names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    if (codes_.test(i)) names.emplace_back(kNames[i]);
  }
  for (std::size_t i = 0; i < http_.size(); ++i) {
    if (http_.test(i)) names.push_back(std::to_string(kFirstHttp + static_cast<int>(i)));
  }
  return names;
}

}  // namespace weir
