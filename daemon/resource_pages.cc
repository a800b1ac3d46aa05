#include "daemon/resource_pages.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "coordination/window.h"

namespace weir {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const ResourceView& view) {
  return {{"name", view.name},    {"rule", view.rule},       {"used", view.used},
          {"limit", view.limit},  {"waiting", view.waiting}, {"in_hand", view.in_hand},
          {"window", view.window}};
}

// Names come from clients, and may be any bytes.
std::string text_of(Json resources) {
  const Json page{{"resources", std::move(resources)}};
  return page.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

http::Task<std::string> ResourcePages::page(ResourceQuery query) {
  if (query.name) co_return co_await named(*std::move(query.name));
  co_return busiest(query.top);
}

std::string ResourcePages::busiest(std::size_t top) {
  Coordinator& coordinator = coordination_.coordinator();
  std::vector<ResourceView> views;
  for (const auto& resource : coordinator.resources().all()) {
    views.push_back(coordinator.view(*resource));
  }
  const auto shown = views.begin() + static_cast<std::ptrdiff_t>(std::min(top, views.size()));
  std::partial_sort(views.begin(), shown, views.end(), [](const auto& a, const auto& b) {
    return std::tie(b.waiting, b.used, a.name, a.rule) <
           std::tie(a.waiting, a.used, b.name, b.rule);
  });
  Json list = Json::array();
  for (auto view = views.begin(); view != shown; ++view) list.push_back(to_json(*view));
  return text_of(std::move(list));
}

// One name may be known to several rules.
http::Task<std::string> ResourcePages::named(std::string name) {
  Coordinator& coordinator = coordination_.coordinator();
  std::vector<std::shared_ptr<Resource>> found;
  coordinator.each_policy([&](const Policy& policy) {
    if (auto resource = coordinator.resources().peek(policy, name)) found.push_back(resource);
  });
  Json list = Json::array();
  for (const auto& resource : found) {
    const auto claims =
        co_await claims_of(loop_, coordination_, resource->policy(), resource->name());
    const ResourceView view = coordinator.view(*resource);
    Json entry = to_json(view);
    entry["claims"] = Json(claims.value_or(Coordinator::Claims{}));
    entry["next_free"] = view.next_free ? Json(utc_text_ms(*view.next_free)) : Json(nullptr);
    list.push_back(std::move(entry));
  }
  co_return text_of(std::move(list));
}

http::Task<std::optional<Coordinator::Claims>> claims_of(http::Loop& loop,
                                                         CoordinationThread& coordination,
                                                         const Policy& policy,
                                                         std::string resource) {
  http::Wakeup answered(loop);
  bool told = false;
  std::optional<Coordinator::Claims> claims;
  coordination.inspect(
      policy, std::move(resource),
      [&loop, &answered, &told, &claims](std::optional<Coordinator::Claims> answer) {
        loop.post([&answered, &told, &claims, answer = std::move(answer)]() mutable {
          claims = std::move(answer);
          told = true;
          answered.wake_now();
        });
      });
  while (!told) co_await answered.wait();
  co_return claims;
}

}  // namespace weir
