#pragma once

// The query of an admin page's address: `name=value`, joined by `&`, values percent-encoded. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/placement.h"

namespace weir {

// In the order given; nothing: not well formed.
using QueryParts = std::vector<std::pair<std::string, std::string>>;
std::optional<QueryParts> split_query(std::string_view query);

// /v1/resources?top=N or ?name=NAME
struct ResourceQuery {
  std::size_t top = 20;
  std::optional<std::string> name;
};
// Nothing: not one that is served.
std::optional<ResourceQuery> read_resource_query(std::string_view query);

// /v1/explain?path=PATH&method=METHOD&host=HOST&client=ADDRESS&header=NAME:VALUE, the last one as
// often as need be. Or what is wrong with it.
struct ExplainQuery {
  Question question;
  std::string fault;  // empty: nothing
};
ExplainQuery read_explain_query(std::string_view query);

}  // namespace weir
