#include "daemon/config_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "daemon/schema.h"

namespace weir {

namespace {

using Json = nlohmann::ordered_json;

Json from_shown(const Shown& value) {
  // A double that is whole reads better without its ".0".
  if (auto* number = std::get_if<double>(&value);
      number != nullptr && *number == std::floor(*number) && std::abs(*number) < 1e15) {
    return static_cast<std::int64_t>(*number);
  }
  return std::visit([](const auto& v) { return Json(v); }, value);
}

// The visitor that writes a description (schema.h).
class JsonWriter {
 public:
  template <typename T, typename Kind>
  void field(std::string_view name, const T& value, const Kind& kind) {
    add(name, from_shown(kind.show(value)));
  }

  template <typename T, typename Kind>
  void list(std::string_view name, const std::vector<T>& values, const Kind& kind) {
    Json items = Json::array();
    for (const T& value : values) items.push_back(from_shown(kind.show(value)));
    add(name, std::move(items));
  }

  template <typename T>
  void section(std::string_view name, T&& part) {
    add(name, write(part));
  }

  template <typename T>
  void sections(std::string_view name, std::vector<T>& parts) {
    Json items = Json::array();
    for (T& part : parts) items.push_back(write(part));
    add(name, std::move(items));
  }

  template <typename T>
  void one_or_more(std::string_view name, std::vector<T>& parts) {
    sections(name, parts);
  }

  template <typename T>
  void named(std::string_view name, std::vector<T>& parts) {
    Json items = Json::object();
    for (T& part : parts) items[part.name] = write(part);
    add(name, std::move(items));
  }

  void document(std::string_view name, const std::string& text) {
    add(name, text.empty() ? Json::object() : Json::parse(text));
  }

  template <typename T>
  static Json write(T& part) {
    JsonWriter writer;
    describe(writer, part);
    return std::move(writer.json_);
  }

 private:
  void add(std::string_view name, Json value) { json_[std::string(name)] = std::move(value); }

  Json json_ = Json::object();
};

// Given explicitly, a window would be an error there.
void drop_meaningless_window(Json& rule) {
  if (rule.at("mode") == "in_flight") rule.erase("window");
}

}  // namespace

Json to_json(const Config& config, Secrets secrets) {
  Config copy = config;  // descriptions are of what can be changed
  Json json = JsonWriter::write(copy);
  for (Json& rule : json.at("rules")) drop_meaningless_window(rule);
  drop_meaningless_window(json.at("default"));
  if (secrets == Secrets::masked) {
    for (Json& endpoint : json.at("coordination").at("etcd").at("endpoints")) {
      endpoint = mask_userinfo(endpoint.get<std::string>());
    }
  }
  return json;
}

Json to_json(const Rule& rule) {
  Rule copy = rule;
  Json json = JsonWriter::write(copy);
  drop_meaningless_window(json);
  return json;
}

Json to_json(const Config& config) { return to_json(config, Secrets::masked); }

}  // namespace weir
