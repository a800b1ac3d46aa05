// Whatever a file says: it is refused with errors that fit on a line each, or it is a configuration
// that reads back the same from its own JSON.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/config.h"

namespace weir {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool one_line(const std::string& error) {
  return !error.empty() &&
         std::ranges::none_of(error, [](char c) { return c == '\n' || c == '\r' || c == '\0'; });
}

void check(const std::string& text) {
  Loaded loaded = parse_config(text, "weir.yaml");
  require(loaded.config.has_value() == loaded.errors.empty());
  for (const std::string& error : loaded.errors) require(one_line(error));
  if (!loaded.config) return;
  const auto json = to_json(*loaded.config);
  if (loaded.config->coordination.etcd.endpoints != CoordinationOptions{}.etcd.endpoints) return;
  Loaded again = parse_config(json.dump(), "again.json");
  require(again.config.has_value());
  require(to_json(*again.config) == json);
  require(check_reload(*loaded.config, *again.config).empty());
}

}  // namespace
}  // namespace weir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::check(std::string(data, data + size));
  return 0;
}
