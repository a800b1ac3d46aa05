#include "daemon/admin.h"

#include <nlohmann/json.hpp>

namespace weir {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPrometheus = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

http::Task<void> Admin::serve(http::Connection& connection) {
  const std::string_view method = connection.request().method;
  const std::string_view target = connection.request().target;
  const std::string_view path = target.substr(0, target.find('?'));
  const bool reads = method == "GET" || method == "HEAD";
  std::string query{target.substr(std::min(path.size() + 1, target.size()))};
  Page answer{};
  if (path == "/v1/resources" && reads) {
    answer = co_await resources(std::move(query));
  } else if (path == "/v1/explain" && reads) {
    answer = co_await explain(std::move(query));
  } else {
    answer = page(method, path);
  }
  co_await connection.reply(answer.status, answer.content_type, answer.body);
}

http::Task<Admin::Page> Admin::resources(std::string query) const {
  const std::optional<ResourceQuery> parsed = read_resource_query(query);
  if (!parsed) {
    co_return Page{400, kJson, "{\"error\":\"top=N, from 1 to 100000, or name=NAME\"}\n"};
  }
  std::string body = co_await pages_.resources(*parsed);
  co_return Page{200, kJson, std::move(body)};
}

http::Task<Admin::Page> Admin::explain(std::string query) const {
  ExplainQuery read = read_explain_query(query);
  if (!read.fault.empty()) {
    const nlohmann::ordered_json error{
        {"error", read.fault},
        {"query", "path=PATH[&method=METHOD][&host=HOST][&client=ADDRESS][&header=NAME:VALUE]…"}};
    std::string text = error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    co_return Page{400, kJson, std::move(text)};
  }
  std::string body = co_await pages_.explain(std::move(read.question));
  co_return Page{200, kJson, std::move(body)};
}

Admin::Page Admin::page(std::string_view method, std::string_view path) const {
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
  if (path == "/v1/replicas") return {200, kJson, pages_.replicas()};
  if (path == "/v1/upstreams") return {200, kJson, pages_.upstreams()};
  if (path == "/v1/config") return {200, kJson, pages_.config()};
  return {
      404, kJson,
      "{\"error\":\"no such page\",\"pages\":[\"/livez\",\"/readyz\",\"/metrics\",\"/v1/status\","
      "\"/v1/resources\",\"/v1/replicas\",\"/v1/upstreams\",\"/v1/config\","
      "\"/v1/explain\"]}\n"};
}

}  // namespace weir
