#pragma once

// The admin address: health, metrics, and what the daemon knows of itself. Answers from what it is
// given; on the control loop's thread.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/http/connection.h"

namespace weir {

// /v1/resources?top=N or ?name=NAME
struct ResourceQuery {
  std::size_t top = 20;
  std::optional<std::string> name;
};

// Where the pages come from. Each is called anew for every request.
struct AdminPages {
  std::function<std::string()> not_ready;  // why not; empty: ready
  std::function<std::string()> metrics;
  std::function<std::string()> status;     // JSON
  std::function<std::string()> replicas;   // JSON
  std::function<std::string()> upstreams;  // JSON
  std::function<std::string()> config;     // JSON
  std::function<http::Task<std::string>(ResourceQuery)> resources;
};

class Admin {
 public:
  explicit Admin(AdminPages pages) : pages_(std::move(pages)) {}

  // The handler of the admin server.
  http::Task<void> serve(http::Connection& connection);

 private:
  struct Page {
    int status;
    std::string_view content_type;
    std::string body;
  };
  Page page(std::string_view method, std::string_view path) const;
  http::Task<Page> resources(std::string query) const;

  const AdminPages pages_;
};

}  // namespace weir
