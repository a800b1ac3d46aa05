#include "daemon/ctl/views.h"

#include <chrono>
#include <cstdio>

#include "coordination/window.h"

namespace weir::ctl {
namespace {

using Align = Column::Align;
using std::chrono::ceil;
using std::chrono::floor;
using std::chrono::seconds;

constexpr std::size_t kBar = 20;

std::string yes_or(const Json& object, const char* name, const std::string& no) {
  return member(object, name) == Json(true) ? "yes" : no;
}

std::string used_text(const Json& resource) {
  const std::string limit = text_at(resource, "limit");
  return text_at(resource, "used") + " of " + (limit == "0" ? "-" : limit);
}

}  // namespace

const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? kNone : *found;
}

std::string text_at(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (value.is_null()) return "-";
  if (!value.is_string()) return value.dump();
  const std::string text = harmless(value.get<std::string>());
  return text.empty() ? "-" : text;
}

std::int64_t number_at(const Json& object, const char* name) {
  const Json& value = member(object, name);
  return value.is_number() ? value.get<std::int64_t>() : 0;
}

std::string when_text(const std::string& stamp, WallTime now) {
  const auto time = parse_utc(stamp);
  if (!time || *time <= now) return stamp;
  return stamp + ", in " + span_text(ceil<seconds>(*time - now));
}

std::string rate_text(const Json& throttle) {
  const Json& rate = member(throttle, "rate");
  if (!rate.is_number()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", rate.get<double>());
  if (text_at(throttle, "kind") == "sfb") return text + std::string{" under way"};
  const std::string buckets = text_at(throttle, "buckets");
  return buckets == "1" ? text : text + std::string{" in each of "} + buckets + " buckets";
}

std::string claims_text(const Json& object) {
  std::string text;
  for (const auto& [replica, units] : member(object, "claims").items()) {
    text += (text.empty() ? "" : ", ") + harmless(replica) + " has " + units.dump();
  }
  return text.empty() ? "-" : text;
}

void add_line(std::string& out, std::string_view label, std::string_view value) {
  constexpr std::size_t kLabel = 12;
  out.append(label).append(kLabel - std::min(kLabel - 1, label.size()), ' ');
  out.append(value).append("\n");
}

std::string show_status(const Json& page, WallTime now) {
  std::string out;
  const std::string since = text_at(page, "since");
  const auto began = parse_utc(since);
  add_line(out, "replica", text_at(page, "replica"));
  add_line(out, "version", text_at(page, "version"));
  add_line(out, "up", began ? span_text(floor<seconds>(now - *began)) + ", since " + since : since);
  add_line(out, "ready", yes_or(page, "ready", "no: " + text_at(page, "reason")));
  add_line(out, "listens", text_at(page, "listen") + ", admin on " + text_at(page, "admin"));
  add_line(out, "workers", text_at(page, "workers"));
  add_line(out, "connections", text_at(page, "connections"));
  const Json& store = member(page, "store");
  add_line(out, "store",
           text_at(store, "kind") + (member(store, "up") == Json(true) ? ", up" : ", away"));
  return out;
}

std::string show_ready(const Json& page) {
  return member(page, "ready") == Json(true) ? "ready\n"
                                             : "not ready: " + text_at(page, "reason") + "\n";
}

std::string show_resources(const Json& page, Glyphs glyphs) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& one : member(page, "resources")) {
    rows.push_back({text_at(one, "name"), text_at(one, "rule"),
                    bar(number_at(one, "used"), number_at(one, "limit"), kBar, glyphs),
                    text_at(one, "used"), text_at(one, "limit"), text_at(one, "in_hand"),
                    text_at(one, "waiting"), text_at(one, "window")});
  }
  if (rows.empty()) return "nobody has asked for a resource yet\n";
  return table({{"RESOURCE"},
                {"RULE"},
                {""},
                {"USED", Align::right},
                {"LIMIT", Align::right},
                {"IN HAND", Align::right},
                {"WAITING", Align::right},
                {"WINDOW"}},
               rows);
}

std::string show_resource(const Json& page, WallTime now) {
  std::string out;
  for (const Json& one : member(page, "resources")) {
    add_line(out, "resource", text_at(one, "name"));
    add_line(out, "rule", text_at(one, "rule"));
    add_line(out, "used", used_text(one));
    add_line(out, "in hand", text_at(one, "in_hand"));
    add_line(out, "waiting", text_at(one, "waiting"));
    add_line(out, "window", text_at(one, "window"));
    add_line(out, "next free", when_text(text_at(one, "next_free"), now));
    add_line(out, "claims", claims_text(one));
    out += "\n";
  }
  if (!out.empty()) out.pop_back();
  return out;
}

std::string show_replicas(const Json& page) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& one : member(page, "replicas")) {
    rows.push_back({text_at(one, "name"), text_at(one, "address"), text_at(one, "version"),
                    text_at(one, "since"), member(one, "self") == Json(true) ? "asked" : ""});
  }
  if (rows.empty()) return "no replica is live\n";
  return table({{"REPLICA"}, {"ADDRESS"}, {"VERSION"}, {"SINCE"}, {""}}, rows);
}

std::string show_upstreams(const Json& page, WallTime now) {
  std::vector<std::vector<std::string>> rows, held;
  for (const Json& one : member(page, "upstreams")) {
    const Json& cooldowns = member(one, "cooldowns");
    const bool enabled = member(cooldowns, "enabled") == Json(true);
    const Json& throttle = member(one, "throttle");
    rows.push_back({text_at(one, "name"), text_at(throttle, "kind"), rate_text(throttle),
                    text_at(throttle, "denied"), text_at(throttle, "waiting"),
                    text_at(member(one, "budget"), "affordable"),
                    enabled ? text_at(cooldowns, "records") : "off",
                    enabled ? text_at(cooldowns, "waiting") : "-"});
    for (const Json& record : member(cooldowns, "longest")) {
      held.push_back({text_at(one, "name"), text_at(record, "project"), text_at(record, "status"),
                      text_at(record, "failures"), text_at(record, "waiting"),
                      when_text(text_at(record, "not_before"), now)});
    }
  }
  std::string out = table({{"UPSTREAM"},
                           {"THROTTLE"},
                           {"RATE", Align::right},
                           {"DENIED", Align::right},
                           {"WAITING", Align::right},
                           {"RETRIES LEFT", Align::right},
                           {"COOLDOWNS", Align::right},
                           {"WAITING", Align::right}},
                          rows);
  if (held.empty()) return out;
  return out + "\n" +
         table({{"UPSTREAM"},
                {"PROJECT"},
                {"STATUS"},
                {"FAILURES", Align::right},
                {"WAITING", Align::right},
                {"NOT BEFORE"}},
               held);
}

}  // namespace weir::ctl
