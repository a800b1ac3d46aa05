#include "proxy/placement.h"

#include <algorithm>

#include "proxy/http/framing.h"
#include "proxy/http/head.h"
#include "proxy/http/refusal.h"

namespace weir {
namespace {

using http::Denial;
using http::LocalReply;

// As a client would send it. One that names no host speaks HTTP/1.0, which need not.
std::string wire_of(const Question& question) {
  std::string wire = question.method + " " + question.target;
  wire += question.host.empty() ? " HTTP/1.0\r\n" : " HTTP/1.1\r\nHost: " + question.host + "\r\n";
  for (const auto& [name, value] : question.fields) wire += name + ": " + value + "\r\n";
  return wire + "\r\n";
}

std::optional<LocalReply> read(const std::string& wire, const http::Limits& limits,
                               http::Head& head) {
  http::HeadReader reader(http::HeadReader::Kind::request, limits);
  const http::HeadReader::Result result = reader.read(wire, head);
  if (auto refusal = refusal_of(result, limits)) return refusal;
  if (result.state != http::HeadReader::State::done || result.consumed != wire.size()) {
    return LocalReply{Denial::malformed, "not one head"};
  }
  if (const char* fault = fault_of(head, http::request_framing(head))) {
    return LocalReply{Denial::malformed, fault};
  }
  return refusal_of(head);
}

bool host_matches(const std::string& wanted, std::string_view host) {
  return wanted.empty() || http::equal_ignoring_case(host_of(wanted), host_of(host));
}

bool method_matches(const std::vector<std::string>& wanted, std::string_view method) {
  return wanted.empty() || std::ranges::any_of(wanted, [method](std::string_view allowed) {
           return allowed == method || (allowed == "GET" && method == "HEAD");
         });
}

std::vector<PassedOver> passed_over(const Routes& routes, std::size_t found,
                                    const RequestFacts& facts) {
  std::vector<PassedOver> result;
  for (std::size_t i = 0; i < found; ++i) {
    PassedOver passed{routes.rule(i).name, {}};
    for (const Match& match : routes.rule(i).matches) {
      if (const auto failed = failed_part(match, facts)) passed.failed.push_back(*failed);
    }
    result.push_back(std::move(passed));
  }
  return result;
}

}  // namespace

std::string_view to_string(MatchPart part) {
  switch (part) {
    case MatchPart::path:
      return "path";
    case MatchPart::method:
      return "method";
    case MatchPart::host:
      break;
  }
  return "host";
}

std::optional<MatchPart> failed_part(const Match& match, const RequestFacts& facts) {
  if (!match.path.empty() && !PathPattern(match.path).matches(facts.path)) return MatchPart::path;
  if (!method_matches(match.methods, facts.method)) return MatchPart::method;
  if (!host_matches(match.host, facts.host)) return MatchPart::host;
  return std::nullopt;
}

Placement place(const Question& question, const PlacedBy& by) {
  Placement placed;
  placed.method = question.method;
  const std::string wire = wire_of(question);
  http::Head head;
  placed.refusal = read(wire, by.limits, head);
  if (placed.refusal) return placed;
  std::string scratch;
  const auto canonical = canonical_target(head.method, head.target, by.escaped_slashes, scratch);
  if (const auto* bad = std::get_if<BadTarget>(&canonical)) {
    placed.refusal = LocalReply{Denial::malformed, std::string{bad->why}};
    return placed;
  }
  const Target& target = std::get<Target>(canonical);
  placed.forward = target.forward;
  placed.counted = target.counted;
  placed.client = by.trusted.client_address(question.client, head.fields).text();
  const std::string_view authority = target.authority.empty() ? question.host : target.authority;
  const RequestFacts facts{head.method, target.counted, authority, placed.client, head.fields};
  std::string name;
  const Routed routed = by.routes.route(facts, name);
  placed.rule = routed.rule_index;
  placed.resource = routed.resource;
  placed.passed_over = passed_over(by.routes, routed.rule_index, facts);
  placed.tenant = by.routes.tenant(facts, name);
  const auto upstream =
      std::ranges::find(by.upstreams, routed.rule->upstream, &UpstreamOptions::name);
  placed.upstream = &*upstream;
  placed.project = tenant(upstream->cooldown.project, facts, name);
  return placed;
}

}  // namespace weir
