#pragma once

// Heads as they leave the proxy. What concerns one hop only is dropped, framing is written anew,
// and what we add comes after whatever the peer asked to have removed, so that it cannot be. Pure.

#include <string>
#include <string_view>

#include "proxy/http/framing.h"
#include "proxy/http/head.h"
#include "proxy/limit_fields.h"

namespace weir {

namespace http {

// Whether the sender keeps the connection open behind this message, as far as its head tells.
bool persists(const Head& head);
// The protocol that a request asks to switch to, or that a 101 switches to; empty: none, or one
// that we do not pass on (h2c would carry requests past every rule).
std::string_view upgrade_of(const Head& head);

}  // namespace http

inline constexpr std::string_view kPreviousAttempts = "grpc-previous-rpc-attempts";

struct ForwardedRequest {
  const http::Head& head;
  std::string_view target;       // canonical
  std::string_view authority;    // what Host is to say
  std::string_view peer;         // the client's address, or the proxy's that we hear it through
  bool peer_is_trusted;          // its X-Forwarded-* and Via are extended, not replaced
  http::Framing framing;         // of the body to come
  std::string_view upgrade;      // protocol to ask for; empty: none
  bool counts_attempts = false;  // kPreviousAttempts is ours to say, and not the client's
};

void append_request_head(std::string& out, const ForwardedRequest& request);

// The field's line; none for 0.
void append_previous_attempts(std::string& out, int attempts);

struct ForwardedAnswer {
  const http::Head& head;
  http::Framing framing;       // how the body is sent to the client
  std::int64_t stated_length;  // Content-Length of the body that HEAD and 304 leave out; -1: none
  int client_minor_version;
  bool keep_alive;
  std::string_view date;       // for an answer that has none
  LimitFields limit_fields{};  // in place of the upstream's own
  int previous_attempts = 0;   // not 0: the client is told, whatever the upstream says
};

void append_answer_head(std::string& out, const ForwardedAnswer& answer);
// 103 and its kin: an answer before the answer.
void append_interim_head(std::string& out, const http::Head& head);
// 101 with the protocol that was agreed.
void append_switch_head(std::string& out, const http::Head& head, std::string_view protocol,
                        const LimitFields& limit_fields = {});

}  // namespace weir
