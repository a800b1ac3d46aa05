#pragma once

// The admin address's pages as a person reads them. Pure: JSON in, text out. What a page does not
// say, as one of an older daemon, is left out or shown as `-`.

#include <nlohmann/json.hpp>
#include <string>

#include "coordination/base/clock.h"
#include "daemon/ctl/text.h"

namespace weir::ctl {

using Json = nlohmann::json;

// A member as text, made harmless: `-` where it is missing or null.
std::string text_at(const Json& object, const char* name);
std::int64_t number_at(const Json& object, const char* name);
// nullptr where it is missing.
const Json& member(const Json& object, const char* name);
// "2026-11-18T05:05:00Z, in 12 s"; without the latter where it is over.
std::string when_text(const std::string& stamp, WallTime now);

// "100.0 in each of 17 buckets" of a throttle; "100.0 under way" of sfb, which bounds that.
std::string rate_text(const Json& throttle);

// "r1 has 2, r2 has 3": the member `claims`; `-` where there are none.
std::string claims_text(const Json& object);

// "label      value", one to a line.
void add_line(std::string& out, std::string_view label, std::string_view value);

std::string show_status(const Json& page, WallTime now);
std::string show_ready(const Json& page);
std::string show_resources(const Json& page, Glyphs glyphs);
std::string show_resource(const Json& page, WallTime now);  // those of one name
std::string show_replicas(const Json& page);
std::string show_upstreams(const Json& page, WallTime now);
std::string show_explain(const Json& page, WallTime now);

}  // namespace weir::ctl
