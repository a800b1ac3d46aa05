#pragma once

// What `weirctl top` shows of one daemon at one moment. Pure: pages in, lines out.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coordination/base/clock.h"
#include "daemon/ctl/text.h"
#include "daemon/ctl/views.h"

namespace weir::ctl {

// The pages as they were told at one moment.
struct Snapshot {
  Instant at;
  std::string fault;  // why there are none; empty: there are
  Json status, resources, upstreams;
  std::map<std::string, double> requests;  // ever, by outcome
};

// The values of weir_requests_total in a page of metrics, all rules together.
std::map<std::string, double> requests_by_outcome(std::string_view metrics);

struct Screen {
  std::size_t width = 100, height = 40;
  Glyphs glyphs = Glyphs::unicode;
};
// At most as many lines as the screen has, none wider than it. Rates are over the time since
// `last`; nullptr: they are not known yet.
std::vector<std::string> top_frame(const Snapshot& now, const Snapshot* last, const Screen& screen);

// For those who want no picture.
Json to_json(const Snapshot& now);

}  // namespace weir::ctl
