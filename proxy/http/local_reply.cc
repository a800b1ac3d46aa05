#include "proxy/http/local_reply.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weir::http {
namespace {

struct Entry {
  int status;
  std::string_view reason;
  std::string_view title;
  int retry_after;  // seconds; 0: the field is not sent
};

Entry entry_of(Denial denial) {
  switch (denial) {
    case Denial::malformed:
      return {400, "malformed", "The request is malformed", 0};
    case Denial::connect_method:
      return {405, "malformed", "CONNECT is not served here", 0};
    case Denial::too_slow:
      return {408, "malformed", "The request came too slowly", 0};
    case Denial::target_too_long:
      return {414, "malformed", "The request target is too long", 0};
    case Denial::unknown_expectation:
      return {417, "malformed", "The expectation is unknown", 0};
    case Denial::header_too_large:
      return {431, "malformed", "The request head is too large", 0};
    case Denial::limit:
      return {429, "limit", "The limit is reached", 1};
    case Denial::cooldown:
      return {429, "cooldown", "The upstream asked not to be asked for now", 1};
    case Denial::throttled:
      return {503, "throttled", "The upstream gets as much as it can serve", 1};
    case Denial::store_unavailable:
      return {503, "store_unavailable", "The limit cannot be asked for", 1};
    case Denial::queue_full:
      return {503, "queue_full", "Too many are being served or waiting", 1};
    case Denial::draining:
      return {503, "draining", "This replica is about to stop", 1};
    case Denial::upstream_unreachable:
      return {502, "upstream_unreachable", "No server of the upstream could be reached", 0};
    case Denial::upstream_failed:
      return {502, "upstream_failed", "The upstream failed the request", 0};
    case Denial::upstream_timeout:
      return {504, "upstream_timeout", "The upstream took too long", 0};
    case Denial::deadline:
      return {504, "deadline", "All attempts together took too long", 0};
  }
  return {500, "malformed", "", 0};
}

void append_head(std::string& out, int status, std::string_view content_type, std::size_t length,
                 std::string_view date, After after) {
  out.append("HTTP/1.1 ").append(std::to_string(status)).append(" ").append(status_text(status));
  out.append("\r\nDate: ").append(date);
  out.append("\r\nContent-Type: ").append(content_type);
  out.append("\r\nContent-Length: ").append(std::to_string(length));
  out.append(after == After::close ? "\r\nConnection: close\r\n"
                                   : "\r\nConnection: keep-alive\r\n");
}

}  // namespace

int status_of(Denial denial) { return entry_of(denial).status; }

std::string_view reason_of(Denial denial) { return entry_of(denial).reason; }

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 414:
      return "URI Too Long";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "";
  }
}

void append_local_reply(std::string& out, const LocalReply& reply, std::string_view method,
                        std::string_view date, After after) {
  const Entry entry = entry_of(reply.denial);
  nlohmann::ordered_json problem{{"type", "about:blank#" + std::string{entry.reason}},
                                 {"title", entry.title},
                                 {"status", entry.status},
                                 {"detail", reply.detail},
                                 {"reason", entry.reason}};
  if (!reply.resource.empty()) problem["resource"] = reply.resource;
  // Whatever bytes a client sent into the detail, the body stays JSON.
  const std::string body =
      problem.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  append_head(out, entry.status, "application/problem+json", body.size(), date, after);
  if (entry.status == 405) out.append("Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
  if (const int wait = std::max(entry.retry_after, reply.retry_after); wait > 0) {
    out.append("Retry-After: ").append(std::to_string(wait)).append("\r\n");
  }
  out.append(reply.fields).append("\r\n");
  if (method != "HEAD") out.append(body);
}

void append_answer(std::string& out, int status, std::string_view content_type,
                   std::string_view body, std::string_view method, std::string_view date,
                   After after) {
  append_head(out, status, content_type, body.size(), date, after);
  out.append("\r\n");
  if (method != "HEAD") out.append(body);
}

}  // namespace weir::http
