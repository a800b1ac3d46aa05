// The page of /v1/explain, as a person reads it: first what happens, then why.

#include <chrono>

#include "daemon/ctl/views.h"

namespace weir::ctl {
namespace {

constexpr std::size_t kMostPassed = 5;

std::string joined(const Json& list, const char* between) {
  std::string out;
  for (const Json& one : list) {
    if (!out.empty()) out += between;
    out += one.is_string() ? harmless(one.get<std::string>()) : one.dump();
  }
  return out;
}

std::string first_line(const Json& page) {
  const Json& request = member(page, "request");
  const Json& prospect = member(page, "prospect");
  std::string line = text_at(request, "method") + " " + text_at(request, "target") + " " +
                     text_at(prospect, "text");
  const Json& status = member(prospect, "status");
  if (!status.is_null()) line += " (" + status.dump() + ")";
  const Json& wait = member(prospect, "wait_ms");
  if (wait.is_number()) {
    const std::chrono::milliseconds left{wait.get<std::int64_t>()};
    line += " (in " + span_text(std::chrono::ceil<std::chrono::seconds>(left)) + ")";
  }
  return line + "\n";
}

std::string rule_text(const Json& rule) {
  std::string text = text_at(rule, "name");
  const Json& passed = member(rule, "passed_over");
  std::size_t shown = 0;
  for (const Json& one : passed) {
    if (shown == kMostPassed) break;
    text += shown++ == 0 ? "; not " : ", ";
    text += text_at(one, "name") + " (" + joined(member(one, "differs"), ", ") + ")";
  }
  if (passed.size() > shown) text += " and " + std::to_string(passed.size() - shown) + " more";
  return text;
}

std::string limit_text(const Json& limit) {
  if (member(limit, "unlimited") == Json(true)) return "none";
  std::string text = text_at(limit, "limit");
  if (limit.contains("window")) text += " in " + text_at(limit, "window");
  text += ", " + text_at(limit, "mode") + "; waits " + text_at(limit, "wait") + ", " +
          text_at(limit, "queue");
  if (member(limit, "shadow") == Json(true)) text += "; a shadow";
  return text;
}

std::string usage_text(const Json& usage, WallTime now) {
  std::string text = text_at(usage, "used") + " of " + text_at(usage, "of") + " used, " +
                     text_at(usage, "left") + " left, " + text_at(usage, "in_hand") +
                     " of them in hand here; " + text_at(usage, "waiting") + " waiting";
  if (usage.contains("window")) text += "; window of " + text_at(usage, "window");
  if (!member(usage, "next_free").is_null()) {
    text += "; next free " + when_text(text_at(usage, "next_free"), now);
  }
  return text;
}

std::string cooldown_text(const Json& cooldown, WallTime now) {
  if (member(cooldown, "enabled") != Json(true)) return "off";
  const std::string project = "project " + text_at(cooldown, "project");
  if (member(cooldown, "held") != Json(true)) return "none; " + project;
  if (member(cooldown, "probing") == Json(true)) return "a probe is under way; " + project;
  return "until " + when_text(text_at(cooldown, "not_before"), now) + "; " + project;
}

std::string throttle_text(const Json& throttle) {
  if (!throttle.contains("rate")) return text_at(throttle, "kind");
  return text_at(throttle, "kind") + ", " + rate_text(throttle) + "; " +
         text_at(throttle, "waiting") + " waiting";
}

std::string retries_text(const Json& retries) {
  const std::string policy = text_at(retries, "policy");
  if (policy == "none") return "none: " + text_at(retries, "because");
  std::string text = "up to " + text_at(retries, "max_attempts") + " attempts";
  if (policy == "hedging") {
    text += ", one more every " + text_at(retries, "delay_ms") + " ms";
  } else {
    text += " on " + joined(member(retries, "codes"), ", ") + ", backing off " +
            text_at(retries, "initial_backoff_ms") + " to " + text_at(retries, "max_backoff_ms") +
            " ms";
  }
  if (retries.contains("timeout_ms")) text += ", " + text_at(retries, "timeout_ms") + " ms in all";
  text += "; the budget pays for " + text_at(retries, "budget");
  if (member(retries, "throttled") == Json(true)) text += "; retryThrottling forbids them now";
  return text;
}

}  // namespace

std::string show_explain(const Json& page, WallTime now) {
  std::string out = first_line(page);
  if (!page.contains("path")) return out;
  out += "\n";
  const Json& path = member(page, "path");
  add_line(out, "path", text_at(path, "counted"));
  add_line(out, "sent as", text_at(path, "forwarded"));
  add_line(out, "rule", rule_text(member(page, "rule")));
  add_line(out, "resource", text_at(page, "resource"));
  add_line(out, "tenant", text_at(page, "tenant") + ", client " + text_at(page, "client"));
  add_line(out, "limit", limit_text(member(page, "limit")));
  const Json& usage = member(page, "usage");
  if (usage.is_object()) {
    add_line(out, "usage", usage_text(usage, now));
    add_line(out, "claims", claims_text(usage));
  }
  const Json& upstream = member(page, "upstream");
  add_line(out, "upstream", text_at(upstream, "name"));
  add_line(out, "cooldown", cooldown_text(member(upstream, "cooldown"), now));
  add_line(out, "throttle", throttle_text(member(upstream, "throttle")));
  add_line(out, "retries", retries_text(member(upstream, "retries")));
  return out;
}

}  // namespace weir::ctl
