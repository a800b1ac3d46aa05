#include "daemon/ctl/top_frame.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "coordination/window.h"

namespace weir::ctl {
namespace {

constexpr std::size_t kLeastName = 12;

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.1f" : "%.0f", value);
  return text;
}

std::string head_line(const Snapshot& now) {
  const Json& status = now.status;
  const auto began = parse_utc(text_at(status, "since"));
  std::string line = "weir " + text_at(status, "version") + "  " + text_at(status, "replica");
  if (began) {
    line += "  up " + span_text(std::chrono::floor<std::chrono::seconds>(now.at.wall - *began));
  }
  line += member(status, "ready") == Json(true) ? "  ready"
                                                : "  NOT READY: " + text_at(status, "reason");
  const Json& store = member(status, "store");
  line += "  store " + text_at(store, "kind");
  if (member(store, "up") != Json(true)) line += " AWAY";
  return line + "  connections " + text_at(status, "connections");
}

// By outcome, those with most first; what does not happen is left out.
std::string rates_line(const Snapshot& now, const Snapshot* last) {
  const bool known = last && last->fault.empty() && now.at.steady > last->at.steady;
  if (!known) return "requests/s  -";
  const double seconds = std::chrono::duration<double>(now.at.steady - last->at.steady).count();
  double all = 0;
  std::vector<std::pair<double, std::string>> rates;
  for (const auto& [outcome, count] : now.requests) {
    const auto before = last->requests.find(outcome);
    const double base = before == last->requests.end() ? 0 : before->second;
    const double rate = std::max(0.0, count - base) / seconds;  // it may have been restarted
    all += rate;
    if (rate > 0) rates.emplace_back(rate, outcome);
  }
  std::ranges::sort(rates, std::greater{});
  std::string line = "requests/s  " + number_text(all);
  for (const auto& [rate, outcome] : rates) line += "  " + outcome + " " + number_text(rate);
  return line;
}

std::string padded(std::string text, std::size_t width, Column::Align align, Glyphs glyphs) {
  text = cut_to(text, width, glyphs);
  const std::string blanks(width - width_of(text), ' ');
  return align == Column::Align::left ? text + blanks : blanks + text;
}

// The name gets what the others leave of the width; on a narrow screen the numbers are cut off.
std::string resource_line(const std::string& name, const std::string& fill, const std::string& used,
                          const std::string& in_hand, const std::string& waiting,
                          const Screen& screen) {
  constexpr std::size_t kNumbers = 17 + 9 + 9;
  const std::size_t others = width_of(fill) + 2 + kNumbers;
  const std::size_t name_width =
      screen.width > others + kLeastName ? screen.width - others : kLeastName;
  using enum Column::Align;
  return padded(name, name_width, left, screen.glyphs) + "  " + fill +
         padded(used, 17, right, screen.glyphs) + padded(in_hand, 9, right, screen.glyphs) +
         padded(waiting, 9, right, screen.glyphs);
}

std::size_t bar_width(const Screen& screen) {
  return std::clamp<std::size_t>(screen.width / 4, 4, 40);
}

std::vector<std::string> resource_lines(const Snapshot& now, const Screen& screen) {
  const std::string title = padded("USE", bar_width(screen), Column::Align::left, screen.glyphs);
  std::vector<std::string> lines{
      resource_line("RESOURCE", title, "USED OF LIMIT", "IN HAND", "WAITING", screen)};
  for (const Json& one : member(now.resources, "resources")) {
    const std::string limit = text_at(one, "limit");
    lines.push_back(resource_line(
        text_at(one, "name"),
        bar(number_at(one, "used"), number_at(one, "limit"), bar_width(screen), screen.glyphs),
        text_at(one, "used") + " of " + (limit == "0" ? "-" : limit), text_at(one, "in_hand"),
        text_at(one, "waiting"), screen));
  }
  return lines;
}

std::vector<std::string> upstream_lines(const Snapshot& now) {
  std::vector<std::string> lines;
  for (const Json& one : member(now.upstreams, "upstreams")) {
    const Json& cooldowns = member(one, "cooldowns");
    std::string line = "upstream " + text_at(one, "name");
    const Json& throttle = member(one, "throttle");
    if (throttle.contains("rate")) {
      line += "  throttle " + rate_text(throttle) + ", " + text_at(throttle, "waiting") +
              " waiting, " + text_at(throttle, "denied") + " denied";
    }
    if (member(cooldowns, "enabled") == Json(true)) {
      line += "  cooldowns " + text_at(cooldowns, "records") + ", " +
              text_at(cooldowns, "waiting") + " waiting";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::map<std::string, double> requests_by_outcome(std::string_view metrics) {
  constexpr std::string_view kName = "weir_requests_total{";
  constexpr std::string_view kLabel = "outcome=\"";
  std::map<std::string, double> sums;
  while (!metrics.empty()) {
    const std::string_view line = metrics.substr(0, metrics.find('\n'));
    metrics.remove_prefix(std::min(line.size() + 1, metrics.size()));
    const std::size_t label = line.find(kLabel);
    const std::size_t value = line.rfind(' ');
    if (!line.starts_with(kName) || label == line.npos) continue;
    const std::string_view outcome = line.substr(label + kLabel.size());
    double count = 0;
    std::from_chars(line.data() + value + 1, line.data() + line.size(), count);
    sums[std::string{outcome.substr(0, outcome.find('"'))}] += count;
  }
  return sums;
}

std::vector<std::string> top_frame(const Snapshot& now, const Snapshot* last,
                                   const Screen& screen) {
  std::vector<std::string> lines;
  if (!now.fault.empty()) {
    lines = {"weir", harmless(now.fault)};
  } else {
    lines = {head_line(now), rates_line(now, last), ""};
    const std::vector<std::string> upstreams = upstream_lines(now);
    const std::vector<std::string> resources = resource_lines(now, screen);
    // What upstreams there are is worth a third of the screen, at most.
    const std::size_t shown = std::min(upstreams.size(), screen.height / 3);
    const std::size_t room = screen.height > shown + 4 ? screen.height - shown - 4 : 1;
    lines.insert(lines.end(), resources.begin(),
                 resources.begin() + static_cast<std::ptrdiff_t>(std::min(room, resources.size())));
    if (shown > 0) lines.emplace_back();
    lines.insert(lines.end(), upstreams.begin(),
                 upstreams.begin() + static_cast<std::ptrdiff_t>(shown));
  }
  if (lines.size() > screen.height) lines.resize(screen.height);
  for (std::string& line : lines) {
    line = cut_to(line, screen.width, screen.glyphs);
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

Json to_json(const Snapshot& now) {
  return {{"status", now.status},
          {"resources", member(now.resources, "resources")},
          {"upstreams", member(now.upstreams, "upstreams")},
          {"requests", now.requests}};
}

}  // namespace weir::ctl
