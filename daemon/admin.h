#pragma once

// The admin address: health, metrics, and what the daemon knows of itself. Answers from what it is
// given; on the control loop's thread.

#include <functional>
#include <string>
#include <string_view>

#include "daemon/query.h"
#include "proxy/http/connection.h"

namespace weir {

// Where the pages come from. Each is called anew for every request.
struct AdminPages {
  std::function<std::string()> not_ready;  // why not; empty: ready
  std::function<std::string()> metrics;
  std::function<std::string()> status;                              // JSON
  std::function<std::string()> replicas;                            // JSON
  std::function<std::string()> upstreams;                           // JSON
  std::function<std::string()> config;                              // JSON
  std::function<http::Task<std::string>(ResourceQuery)> resources;  // JSON
  std::function<http::Task<std::string>(Question)> explain;         // JSON
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
  http::Task<Page> explain(std::string query) const;

  const AdminPages pages_;
};

}  // namespace weir
