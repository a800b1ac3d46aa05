#pragma once

// How an attempt ended, in gRPC's words: its status codes, and what an HTTP answer counts as. Plain
// values and pure functions; any thread.

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/field.h"

namespace weir {

enum class StatusCode : std::uint8_t {
  ok,
  cancelled,
  unknown,
  invalid_argument,
  deadline_exceeded,
  not_found,
  already_exists,
  permission_denied,
  resource_exhausted,
  failed_precondition,
  aborted,
  out_of_range,
  unimplemented,
  internal,
  unavailable,
  data_loss,
  unauthenticated,
};
inline constexpr int kStatusCodes = 17;

// By its gRPC name, in any letter case.
std::optional<StatusCode> status_code_named(std::string_view name);

struct Outcome {
  StatusCode code = StatusCode::ok;
  int http_status = 0;  // 0: no answer came
};

// An answer counts as what its one grpc-status says, otherwise as gRPC maps its HTTP status: 429,
// 502, 503 and 504 are UNAVAILABLE. Below 400 nothing has failed.
Outcome outcome_of_answer(int http_status, std::span<const http::Field> fields);

// What an attempt's end says of the upstream's load: it was served; sending less would have helped;
// or neither, as with errors of the request itself. An upstream that nobody could connect to has no
// outcome of its own, and is too_much.
enum class Load { borne, too_much, unknown };
Load load_of(const Outcome& outcome);

// Codes that a policy names. HTTP statuses stand beside gRPC's codes: 503 alone may be listed
// without 502.
class StatusSet {
 public:
  void add(StatusCode code) { codes_.set(static_cast<std::size_t>(code)); }
  void add_http(int status) { http_.set(static_cast<std::size_t>(status - kFirstHttp)); }
  bool empty() const { return codes_.none() && http_.none(); }
  // OK is in none.
  bool contains(const Outcome& outcome) const;
  // "UNAVAILABLE", "503"
  std::vector<std::string> names() const;

  static constexpr int kFirstHttp = 400, kLastHttp = 599;

 private:
  std::bitset<kStatusCodes> codes_;
  std::bitset<kLastHttp - kFirstHttp + 1> http_;
};

}  // namespace weir
