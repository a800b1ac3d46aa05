#pragma once

// Where a request that somebody asks about would belong, by the steps that an exchange takes with
// one that has come: is it served at all, which path, which rule and why none before it, which
// resource, tenant and upstream. Pure; any thread.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/forwarded.h"
#include "proxy/http/limits.h"
#include "proxy/http/local_reply.h"
#include "proxy/path.h"
#include "proxy/route.h"
#include "proxy/rule.h"
#include "proxy/upstream_options.h"

namespace weir {

// A request that has not come.
struct Question {
  std::string method = "GET";
  std::string target;
  std::string host{};                                         // empty: it names none
  Address client{Address::V4{127, 0, 0, 1}};                  // the connection's peer
  std::vector<std::pair<std::string, std::string>> fields{};  // beside Host
};

// What it is placed by. Everything outlives the call.
struct PlacedBy {
  const Routes& routes;
  const TrustedProxies& trusted;
  std::span<const UpstreamOptions> upstreams;
  EscapedSlashes escaped_slashes;
  const http::Limits& limits;
};

// In the order in which they are looked at.
enum class MatchPart { path, method, host };
std::string_view to_string(MatchPart part);

// The first part of the match that the request fails; nothing: it matches.
std::optional<MatchPart> failed_part(const Match& match, const RequestFacts& facts);

struct PassedOver {
  std::string rule;
  std::vector<MatchPart> failed;  // one for each of its matches
};

struct Placement {
  std::optional<http::LocalReply> refusal;  // as it stands; then nothing below holds
  std::string method;
  std::string forward, counted;  // as in Target
  std::string client;            // who it comes from, behind proxies that are trusted
  std::size_t rule = 0;          // as in Routed
  std::vector<PassedOver> passed_over;
  std::string resource, tenant;
  const UpstreamOptions* upstream = nullptr;  // one of those given
  std::string project;                        // for its cooldown
};

Placement place(const Question& question, const PlacedBy& by);

}  // namespace weir
