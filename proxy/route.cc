#include "proxy/route.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "coordination/base/sha256.h"
#include "proxy/forwarded.h"
#include "proxy/path.h"

namespace weir {
namespace {

constexpr std::string_view missing = "-";
constexpr std::string_view digest_prefix = "sha256:";
constexpr std::size_t longest_name = 1024;

std::string_view or_missing(std::string_view value) { return value.empty() ? missing : value; }

// The value that everyone who reads the request agrees on: none if the field is sent twice.
std::string_view only_field(std::span<const http::Field> fields, std::string_view name) {
  const http::Field* found = nullptr;
  for (const http::Field& field : fields) {
    if (!http::equal_ignoring_case(field.name, name)) continue;
    if (found) return {};
    found = &field;
  }
  return found ? found->value : std::string_view{};
}

std::string_view segment_of(std::string_view path, int number) {
  if (!path.starts_with('/')) return {};
  std::string_view segment;
  for (; number > 0; --number) {
    if (path.empty()) return {};
    segment = take_segment(path);
  }
  return segment;
}

std::string_view address_tenant(std::string_view client_ip, std::string& scratch) {
  // IPv4 names itself, without a detour.
  if (client_ip.find(':') == std::string_view::npos) return or_missing(client_ip);
  const auto address = Address::parse(client_ip);
  if (!address) return missing;
  scratch.clear();
  if (address->is_v4()) {
    address->append_to(scratch);
  } else {
    address->prefix(64).append_to(scratch);
    scratch += "/64";
  }
  return scratch;
}

std::string_view counted_host(std::string_view authority, std::string& scratch) {
  const std::string_view host = host_of(authority);
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (std::ranges::none_of(host, is_upper)) return or_missing(host);
  scratch.resize(host.size());
  std::ranges::transform(host, scratch.begin(), http::lower_case);
  return scratch;
}

std::string_view counted_method(std::string_view method) {
  return method == "HEAD" ? "GET" : or_missing(method);
}

std::string_view bounded_name(std::string_view name, std::string& scratch) {
  if (name.size() <= longest_name && !name.starts_with(digest_prefix)) return name;
  const auto digest = sha256_hex(name);  // first: the name may be in the scratch string
  scratch.assign(digest_prefix).append(digest.data(), digest.size());
  return scratch;
}

std::string_view raw_tenant(const TenantSource& source, const RequestFacts& facts,
                            std::string& scratch) {
  switch (source.kind) {
    case TenantSource::Kind::header:
      return or_missing(only_field(facts.fields, source.header));
    case TenantSource::Kind::segment:
      return or_missing(segment_of(facts.path, source.segment));
    case TenantSource::Kind::client_ip:
      break;
  }
  return address_tenant(facts.client_ip, scratch);
}

// Keyed as host names are compared.
struct HostHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view host) const {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : host) {
      hash = (hash ^ static_cast<std::uint8_t>(http::lower_case(c))) * 0x100000001b3;
    }
    return hash;
  }
};

struct HostEqual {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const {
    return http::equal_ignoring_case(a, b);
  }
};

}  // namespace

// All patterns as one tree of segments per host, and one more for rules without a host. A request
// walks down its path's segments and, where a pattern has `*`, both ways; a subtree whose first
// rule comes after the best one found is left out.
class Routes::Index {
 public:
  explicit Index(std::span<const Rule> rules) {
    for (std::uint32_t i = 0; i < rules.size(); ++i) {
      if (rules[i].matches.empty()) add(i, Match{});
      for (const Match& match : rules[i].matches) add(i, match);
    }
  }

  // The first rule that matches, or `none`.
  std::uint32_t find(const RequestFacts& facts, std::uint32_t none) const {
    std::uint32_t best = none;
    search(any_host_, facts, best);
    if (!hosts_.empty()) {
      const auto host = hosts_.find(host_of(facts.host));
      if (host != hosts_.end()) search(host->second, facts, best);
    }
    return best;
  }

 private:
  struct Entry {
    std::uint32_t rule;
    std::vector<std::string> methods;  // empty: any
  };
  using Entries = std::vector<Entry>;

  struct SegmentHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view segment) const {
      return std::hash<std::string_view>{}(segment);
    }
  };

  struct Node {
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max();  // rule in this subtree
    Entries here;   // patterns that end at this node; at a root: rules for any path
    Entries below;  // those that end in `**`
    std::unordered_map<std::string, std::unique_ptr<Node>, SegmentHash, std::equal_to<>> literals;
    std::unique_ptr<Node> star;
  };

  // Rules come in their order, which keeps each list of entries sorted.
  void add(std::uint32_t rule, const Match& match) {
    Node* node = &root_for(match.host);
    node->first = std::min(node->first, rule);
    Entries* entries = &node->here;
    if (!match.path.empty()) {
      const PathPattern pattern(match.path);
      for (std::string_view path = pattern.text(); !path.empty();) {
        node = &child(*node, take_segment(path));
        node->first = std::min(node->first, rule);
      }
      entries = pattern.rest() == PathPattern::Rest::anything ? &node->below : &node->here;
    }
    entries->push_back({rule, match.methods});
  }

  Node& root_for(std::string_view host) {
    if (host.empty()) return any_host_;
    return hosts_.try_emplace(std::string(host_of(host))).first->second;
  }

  static Node& child(Node& node, std::string_view segment) {
    auto& slot = segment == "*" ? node.star : node.literals[std::string(segment)];
    if (!slot) slot = std::make_unique<Node>();
    return *slot;
  }

  static bool allows(const Entry& entry, std::string_view method) {
    const auto same = [method](std::string_view allowed) {
      return allowed == method || (allowed == "GET" && method == "HEAD");
    };
    return entry.methods.empty() || std::ranges::any_of(entry.methods, same);
  }

  static void improve(const Entries& entries, std::string_view method, std::uint32_t& best) {
    for (const Entry& entry : entries) {
      if (entry.rule >= best) return;
      if (allows(entry, method)) best = entry.rule;
    }
  }

  static void search(const Node& root, const RequestFacts& facts, std::uint32_t& best) {
    improve(root.here, facts.method, best);
    if (facts.path.starts_with('/')) walk(root, facts.path, facts.method, best);
  }

  // As deep as the longest pattern, whatever the path.
  static void walk(const Node& node, std::string_view rest, std::string_view method,
                   std::uint32_t& best) {
    if (node.first >= best) return;
    improve(node.below, method, best);
    if (rest.empty()) return improve(node.here, method, best);
    const std::string_view segment = take_segment(rest);
    if (!node.literals.empty()) {
      const auto literal = node.literals.find(segment);
      if (literal != node.literals.end()) walk(*literal->second, rest, method, best);
    }
    if (node.star && !segment.empty()) walk(*node.star, rest, method, best);
  }

  Node any_host_;
  std::unordered_map<std::string, Node, HostHash, HostEqual> hosts_;
};

// A resource template, taken apart once.
class Routes::Template {
 public:
  explicit Template(const Rule& rule) : Template(rule.resource) {}

  explicit Template(std::string_view text) {
    if (text.empty()) throw std::invalid_argument("an empty resource");
    while (!text.empty()) {
      const std::size_t brace = std::min(text.find_first_of("{}"), text.size());
      if (brace > 0) parts_.push_back({Part::Kind::fixed, std::string(text.substr(0, brace))});
      text.remove_prefix(brace);
      if (text.empty()) return;
      const std::size_t end = text.find('}');
      if (end == 0 || end == std::string_view::npos) throw std::invalid_argument("a lone brace");
      parts_.push_back(parse(text.substr(1, end - 1)));
      text.remove_prefix(end + 1);
    }
  }

  std::string_view fill(const RequestFacts& facts, const TenantSource& source,
                        std::string& scratch) const {
    if (parts_.size() == 1) {
      return bounded_name(value(parts_.front(), facts, source, scratch), scratch);
    }
    scratch.clear();
    std::string piece;
    for (const Part& part : parts_) scratch += value(part, facts, source, piece);
    return bounded_name(scratch, scratch);
  }

 private:
  struct Part {
    enum class Kind { fixed, path, method, host, tenant, header, segment };
    Kind kind;
    std::string text;  // of fixed, the name of header
    int number = 0;    // of segment
  };

  static Part parse(std::string_view name) {
    using Kind = Part::Kind;
    static constexpr std::pair<std::string_view, Kind> plain[] = {{"path", Kind::path},
                                                                  {"method", Kind::method},
                                                                  {"host", Kind::host},
                                                                  {"tenant", Kind::tenant}};
    for (const auto& [known, kind] : plain) {
      if (name == known) return {kind, {}};
    }
    const std::size_t colon = std::min(name.find(':'), name.size());
    const std::string_view argument = name.substr(std::min(colon + 1, name.size()));
    if (name.substr(0, colon) == "header" && !argument.empty()) {
      return {Kind::header, std::string(argument)};
    }
    if (name.substr(0, colon) == "segment") {
      const char* const end = argument.data() + argument.size();
      int number = 0;
      const auto parsed = std::from_chars(argument.data(), end, number);
      if (parsed.ec == std::errc{} && parsed.ptr == end && number > 0) {
        return {Kind::segment, {}, number};
      }
    }
    throw std::invalid_argument("unknown {" + std::string(name) + "}");
  }

  static std::string_view value(const Part& part, const RequestFacts& facts,
                                const TenantSource& source, std::string& scratch) {
    switch (part.kind) {
      case Part::Kind::path:
        return or_missing(facts.path);
      case Part::Kind::method:
        return counted_method(facts.method);
      case Part::Kind::host:
        return counted_host(facts.host, scratch);
      case Part::Kind::tenant:
        return raw_tenant(source, facts, scratch);
      case Part::Kind::header:
        return or_missing(only_field(facts.fields, part.text));
      case Part::Kind::segment:
        return or_missing(segment_of(facts.path, part.number));
      case Part::Kind::fixed:
        break;
    }
    return part.text;
  }

  std::vector<Part> parts_;
};

namespace {

std::vector<Rule> with_default(std::vector<Rule> rules, Rule fallback) {
  rules.push_back(std::move(fallback));
  return rules;
}

}  // namespace

Routes::Routes(std::vector<Rule> rules, Rule fallback, TenantSource tenant)
    : rules_(with_default(std::move(rules), std::move(fallback))),
      tenant_(std::move(tenant)),
      index_(std::make_unique<const Index>(std::span(rules_).first(size()))),
      templates_(rules_.begin(), rules_.end()) {}

Routes::~Routes() = default;

Routed Routes::route(const RequestFacts& facts, std::string& scratch) const {
  const std::uint32_t found = index_->find(facts, static_cast<std::uint32_t>(size()));
  return {&rules_[found], found, templates_[found].fill(facts, tenant_, scratch)};
}

std::string_view Routes::tenant(const RequestFacts& facts, std::string& scratch) const {
  return weir::tenant(tenant_, facts, scratch);
}

std::string_view tenant(const TenantSource& source, const RequestFacts& facts,
                        std::string& scratch) {
  return bounded_name(raw_tenant(source, facts, scratch), scratch);
}

std::string check_template(std::string_view resource) try {
  [[maybe_unused]] const Routes::Template compiled{resource};
  return {};
} catch (const std::invalid_argument& error) {
  return error.what();
}

}  // namespace weir
