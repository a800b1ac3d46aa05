#include "daemon/query.h"

#include <algorithm>
#include <charconv>

#include "coordination/keyspace.h"

namespace weir {
namespace {

constexpr std::size_t kMaxTop = 100'000;

bool read_top(const std::string& text, std::size_t& top) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), top);
  return error == std::errc{} && end == text.data() + text.size() && top >= 1 && top <= kMaxTop;
}

// What is wrong with it; empty: nothing.
std::string read_part(const std::string& name, const std::string& value, Question& question) {
  if (name == "path") {
    question.target = value;
  } else if (name == "method") {
    question.method = value;
  } else if (name == "host") {
    question.host = value;
  } else if (name == "client") {
    const auto address = Address::parse(value);
    if (!address) return "client is not an address";
    question.client = *address;
  } else if (name == "header") {
    const std::size_t colon = value.find(':');
    if (colon == std::string::npos || colon == 0) return "header is not NAME:VALUE";
    const std::size_t start = std::min(value.find_first_not_of(' ', colon + 1), value.size());
    question.fields.emplace_back(value.substr(0, colon), value.substr(start));
  } else {
    return "unknown: " + name;
  }
  return {};
}

}  // namespace

std::optional<QueryParts> split_query(std::string_view query) {
  QueryParts parts;
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    const std::size_t equals = part.find('=');
    if (equals == part.npos) return std::nullopt;
    auto value = percent_decode(part.substr(equals + 1));
    if (!value) return std::nullopt;
    parts.emplace_back(part.substr(0, equals), *std::move(value));
  }
  return parts;
}

std::optional<ResourceQuery> read_resource_query(std::string_view query) {
  const auto parts = split_query(query);
  if (!parts) return std::nullopt;
  ResourceQuery read;
  for (const auto& [name, value] : *parts) {
    if (name == "name") {
      read.name = value;
    } else if (name != "top" || !read_top(value, read.top)) {
      return std::nullopt;
    }
  }
  return read;
}

ExplainQuery read_explain_query(std::string_view query) {
  const auto parts = split_query(query);
  if (!parts) return {{}, "not of the form name=value&name=value, percent-encoded"};
  ExplainQuery read;
  for (const auto& [name, value] : *parts) {
    read.fault = read_part(name, value, read.question);
    if (!read.fault.empty()) return read;
  }
  if (read.question.target.empty()) read.fault = "path is missing";
  return read;
}

}  // namespace weir
