#include "proxy/headers.h"

#include <algorithm>

#include "proxy/http/writer.h"

namespace weir {
namespace {

using http::Field;
using http::Framing;
using http::Head;
using http::Known;
using http::Writer;

constexpr std::string_view kVia = "1.1 weir";

// Fields that are for this hop only, or that we make ourselves.
bool is_dropped(Known known) {
  switch (known) {
    case Known::connection:
    case Known::content_length:
    case Known::http2_settings:
    case Known::keep_alive:
    case Known::proxy_authenticate:
    case Known::proxy_authorization:
    case Known::proxy_connection:
    case Known::te:
    case Known::trailer:
    case Known::transfer_encoding:
    case Known::upgrade:
      return true;
    default:
      return false;
  }
}

// Whether the sender listed the field in Connection. A client must not make us strip what an
// upstream's safety may hang on (CVE-2022-31813 and its kin).
bool is_unlisted(const Head& head, const Field& field) {
  if (head.connection.fields.empty() || field.known == Known::authorization) return true;
  return std::ranges::none_of(head.connection.fields, [&](std::string_view listed) {
    return http::equal_ignoring_case(listed, field.name);
  });
}

void put_field(Writer& out, std::string_view name, std::string_view value) {
  out.put(name, ": ", value, "\r\n");
}

void put_framing(Writer& out, const Framing& framing) {
  if (framing.kind == Framing::Kind::length) {
    out.put("Content-Length: ", static_cast<std::int64_t>(framing.length), "\r\n");
  } else if (framing.kind == Framing::Kind::chunked) {
    out.put("Transfer-Encoding: chunked\r\n");
  }
}

void put_previous_attempts(Writer& out, int attempts) {
  if (attempts > 0) out.put(kPreviousAttempts, ": ", std::int64_t{attempts}, "\r\n");
}

// Every value that a trusted peer sent for this field, then ours.
void put_extended(Writer& out, const ForwardedRequest& request, Known known, std::string_view name,
                  std::string_view ours) {
  out.put(name, ": ");
  if (request.peer_is_trusted) {
    for (const Field& field : request.head.fields) {
      if (field.known == known && !field.value.empty()) out.put(field.value, ", ");
    }
  }
  out.put(ours, "\r\n");
}

void put_forwarded(Writer& out, const ForwardedRequest& request) {
  put_extended(out, request, Known::x_forwarded_for, "X-Forwarded-For", request.peer);
  // The first proxy knows how and as what the service was asked for; those after it do not.
  const auto keep_or_set = [&](Known known, std::string_view name, std::string_view ours) {
    const Field* sent = request.peer_is_trusted ? request.head.find(known) : nullptr;
    put_field(out, name, sent ? sent->value : ours);
  };
  keep_or_set(Known::x_forwarded_proto, "X-Forwarded-Proto", "http");
  keep_or_set(Known::x_forwarded_host, "X-Forwarded-Host", request.authority);
  put_extended(out, request, Known::via, "Via", kVia);
}

void put_status_line(Writer& out, const Head& head) {
  out.put("HTTP/1.1 ", std::int64_t{head.status}, " ", head.reason, "\r\n");
}

// Fields of the upstream that ours stand in for.
bool is_replaced(Known known, const LimitFields& ours) {
  if (ours.text.empty()) return false;
  return known == Known::weir_waited_ms ||
         known == (ours.style == LimitHeaders::legacy ? Known::x_rate_limit : Known::rate_limit);
}

void put_answer_fields(Writer& out, const Head& head, const LimitFields& limit_fields,
                       int previous_attempts = 0) {
  for (const Field& field : head.fields) {
    if (field.known == Known::grpc_previous_attempts && previous_attempts > 0) continue;
    if (is_dropped(field.known) || is_replaced(field.known, limit_fields)) continue;
    if (is_unlisted(head, field)) put_field(out, field.name, field.value);
  }
}

}  // namespace

namespace http {

bool persists(const Head& head) {
  if (head.connection.close) return false;
  return head.minor_version == 1 || head.connection.keep_alive;
}

std::string_view upgrade_of(const Head& head) {
  const Field* upgrade = head.find(Known::upgrade);
  if (!upgrade || head.minor_version == 0 || head.count(Known::upgrade) > 1) return {};
  if (!head.connection.upgrade) return {};
  const bool passed_on = !any_element(upgrade->value, [](std::string_view protocol) {
    return equal_ignoring_case(protocol.substr(0, 3), "h2c") ||
           equal_ignoring_case(protocol.substr(0, 4), "http");
  });
  return passed_on ? upgrade->value : std::string_view{};
}

}  // namespace http

void append_previous_attempts(std::string& out, int attempts) {
  if (attempts == 0) return;
  Writer writer(out);
  put_previous_attempts(writer, attempts);
}

void append_request_head(std::string& text, const ForwardedRequest& request) {
  const Head& head = request.head;
  Writer out(text);
  out.put(head.method, " ", request.target, " HTTP/1.1\r\n");
  put_field(out, "Host", request.authority);
  for (const Field& field : head.fields) {
    switch (field.known) {
      case Known::expect:
      case Known::host:
      case Known::via:
      case Known::x_forwarded_for:
      case Known::x_forwarded_host:
      case Known::x_forwarded_proto:
        continue;  // ours follow
      case Known::grpc_previous_attempts:
        if (request.counts_attempts) continue;
        break;
      default:
        if (is_dropped(field.known)) continue;
    }
    if (is_unlisted(head, field)) put_field(out, field.name, field.value);
  }
  put_forwarded(out, request);
  put_framing(out, request.framing);
  if (!request.upgrade.empty()) {
    out.put("Connection: upgrade\r\n");
    put_field(out, "Upgrade", request.upgrade);
  }
  out.put("\r\n");
}

void append_answer_head(std::string& text, const ForwardedAnswer& answer) {
  Writer out(text);
  put_status_line(out, answer.head);
  put_answer_fields(out, answer.head, answer.limit_fields, answer.previous_attempts);
  out.put(answer.limit_fields.text);
  put_previous_attempts(out, answer.previous_attempts);
  if (!answer.head.find(Known::date)) put_field(out, "Date", answer.date);
  if (answer.stated_length >= 0) {
    put_framing(out, {Framing::Kind::length, static_cast<std::uint64_t>(answer.stated_length)});
  } else {
    put_framing(out, answer.framing);
  }
  if (!answer.keep_alive) {
    out.put("Connection: close\r\n");
  } else if (answer.client_minor_version == 0) {
    out.put("Connection: keep-alive\r\n");
  }
  out.put("\r\n");
}

void append_interim_head(std::string& text, const Head& head) {
  Writer out(text);
  put_status_line(out, head);
  put_answer_fields(out, head, {});
  out.put("\r\n");
}

void append_switch_head(std::string& text, const Head& head, std::string_view protocol,
                        const LimitFields& limit_fields) {
  Writer out(text);
  put_status_line(out, head);
  put_answer_fields(out, head, limit_fields);
  out.put(limit_fields.text, "Connection: upgrade\r\n");
  put_field(out, "Upgrade", protocol);
  out.put("\r\n");
}

}  // namespace weir
