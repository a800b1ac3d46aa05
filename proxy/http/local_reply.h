#pragma once

// Answers that Weir gives by itself. This is the only place that turns a denial or a failure into
// HTTP: a status, a problem body (RFC 9457) and Retry-After.

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

enum class Denial {
  // the request is not one we pass on
  malformed,
  connect_method,
  too_slow,
  target_too_long,
  unknown_expectation,
  header_too_large,
  // it is, but not now
  limit,
  cooldown,
  throttled,
  store_unavailable,
  queue_full,
  draining,
  // the upstream failed it
  upstream_unreachable,
  upstream_failed,
  upstream_timeout,
  deadline,
};

struct LocalReply {
  Denial denial;
  std::string detail;      // a sentence for the person who reads it
  std::string resource{};  // what was asked for, where that was known
  int retry_after = 0;     // seconds; 0: what the denial says by itself
  std::string fields{};    // further fields, as lines of a head
};

int status_of(Denial denial);
// The word that clients, metrics and logs know it by.
std::string_view reason_of(Denial denial);

std::string_view status_text(int status);

// What to do with the connection behind the answer.
enum class After { keep_alive, close };

// The whole answer. HEAD gets no body.
void append_local_reply(std::string& out, const LocalReply& reply, std::string_view method,
                        std::string_view date, After after);
// The same for answers that are no denial, such as the admin address gives.
void append_answer(std::string& out, int status, std::string_view content_type,
                   std::string_view body, std::string_view method, std::string_view date,
                   After after);

}  // namespace weir::http
