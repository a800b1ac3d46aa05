#pragma once

// Where a request belongs: the first rule that matches it, the resource it counts for, the tenant
// it comes from. Everything here is constant once built and may be used by any number of threads;
// the views that come back live as long as the Routes, the facts and the scratch string they were
// made from.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/field.h"
#include "proxy/rule.h"

namespace weir {

// What routing looks at. Method override fields are not among it: a request is what its request
// line says.
struct RequestFacts {
  std::string_view method;
  std::string_view path;       // Target::counted
  std::string_view host;       // the target's authority, or Host; any case, with or without port
  std::string_view client_ip;  // the text of TrustedProxies::client_address
  std::span<const http::Field> fields;
};

struct Routed {
  const Rule* rule;           // owned by the Routes
  std::size_t rule_index;     // in the order of the rules; Routes::size() is the default
  std::string_view resource;  // what is counted, never empty
};

// Paths are compared with their case; hosts without it, their port and a final dot; methods
// exactly, but HEAD matches where GET does and {method} calls it GET, as the upstream does the same
// work for both.
//
// Resource templates: {path}, {method}, {host}, {header:NAME}, {segment:N} (1 is the first),
// {tenant} and fixed text. What a request lacks is `-`. So is a field sent twice: upstreams differ
// in which one they believe, and a client must not get a fresh resource by adding another. A name
// longer than 1 KiB becomes `sha256:` and its digest, and so does one that begins like that by
// itself, so that nobody can ask for another's digest.
class Routes {
 public:
  // Throws std::invalid_argument if a pattern or a template is not well formed; see check_pattern.
  Routes(std::vector<Rule> rules, Rule fallback, TenantSource tenant);
  ~Routes();
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  // Takes as long as the path has segments, however many rules there are (patterns that branch at
  // `*` aside). `scratch` is written only if the resource is no part of the facts or the template.
  Routed route(const RequestFacts& facts, std::string& scratch) const;

  std::string_view tenant(const RequestFacts& facts, std::string& scratch) const;

  std::size_t size() const { return rules_.size() - 1; }  // without the default
  const Rule& rule(std::size_t index) const { return rules_[index]; }

 private:
  friend std::string check_template(std::string_view resource);
  class Index;
  class Template;

  const std::vector<Rule> rules_;  // the default last
  const TenantSource tenant_;
  const std::unique_ptr<const Index> index_;
  const std::vector<Template> templates_;  // as rules_
};

// Who a request comes from: an address (IPv4 also if mapped into IPv6; of IPv6 the /64, which is
// what one customer gets), a field, or a segment of the path. `-` if missing; a long one by its
// digest, as a resource.
std::string_view tenant(const TenantSource& source, const RequestFacts& facts,
                        std::string& scratch);

// What is wrong with a rule's path or resource, for the configuration's errors; empty if nothing
// is.
std::string check_template(std::string_view resource);

}  // namespace weir
