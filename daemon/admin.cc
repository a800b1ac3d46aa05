#include "daemon/admin.h"

#include <nlohmann/json.hpp>

namespace weir {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPrometheus = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

http::Task<void> Admin::serve(http::Connection& connection) {
  const Page answer = page(connection.request().method, connection.request().target);
  co_await connection.reply(answer.status, answer.content_type, answer.body);
}

Admin::Page Admin::page(std::string_view method, std::string_view target) const {
  const std::string_view path = target.substr(0, target.find('?'));
  if (method != "GET" && method != "HEAD") {
    return {405, kJson, "{\"error\":\"only GET and HEAD are served here\"}\n"};
  }
  if (path == "/livez") return {200, kJson, "{\"live\":true}\n"};
  if (path == "/readyz") {
    const std::string reason = pages_.not_ready();
    if (reason.empty()) return {200, kJson, "{\"ready\":true}\n"};
    return {503, kJson, nlohmann::json{{"ready", false}, {"reason", reason}}.dump() + "\n"};
  }
  if (path == "/metrics") return {200, kPrometheus, pages_.metrics()};
  if (path == "/v1/status") return {200, kJson, pages_.status()};
  if (path == "/v1/config") return {200, kJson, pages_.config()};
  return {
      404, kJson,
      "{\"error\":\"no such page\",\"pages\":[\"/livez\",\"/readyz\",\"/metrics\",\"/v1/status\","
      "\"/v1/config\"]}\n"};
}

}  // namespace weir
