#include "daemon/config.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/config_checks.h"
#include "daemon/config_json.h"
#include "daemon/diagnostics.h"
#include "daemon/schema.h"
#include "daemon/yaml_reader.h"
#include "daemon/yaml_tree.h"

namespace weir {

namespace {

using Tree = std::shared_ptr<const YamlNode>;

// Where the value of a flag stands in the file. Flags that are more than one field have their own
// functions below.
constexpr std::pair<std::string_view, std::string_view> kFields[] = {
    {"listen", "listen"},   {"admin", "admin"},         {"replica", "replica"},
    {"workers", "workers"}, {"log-level", "log.level"}, {"log-format", "log.format"},
};

// The tree of a file that sets nothing but this field.
Tree tree_of(std::string_view path, Tree value) {
  while (true) {
    std::size_t dot = path.rfind('.');
    value = yaml_within(path.substr(dot == std::string_view::npos ? 0 : dot + 1), std::move(value));
    if (dot == std::string_view::npos) return value;
    path = path.substr(0, dot);
  }
}

class OverrideReader {
 public:
  OverrideReader(const Override& given, Config& config, Diagnostics& diagnostics)
      : given_(given), config_(config), source_{diagnostics, given.source, no_files_} {}

  void set(std::string_view path, const Tree& value) {
    read_tree(source_, tree_of(path, value), config_);
  }

  // N/WINDOW.
  void set_limit() {
    std::string_view text = given_.values.back();
    std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
      source_.diagnostics.fail_at({given_.source, 0}, "default.limit",
                                  "must be N/WINDOW as in 100/1m, not " + quote(text));
      return;
    }
    set("default.limit", yaml_scalar(text.substr(0, slash)));
    set("default.window", yaml_scalar(text.substr(slash + 1)));
    set("default.unlimited", yaml_scalar("false"));
  }

  void set_etcd() {
    set("coordination.kind", yaml_scalar("etcd"));
    set("coordination.etcd.endpoints", yaml_list(given_.values));
  }

 private:
  const Override& given_;
  Config& config_;
  const ReadFile no_files_;
  Source source_;
};

void apply(const Overrides& overrides, Config& config, Diagnostics& diagnostics) {
  for (const auto& [name, given] : overrides) {
    if (given.values.empty()) continue;
    OverrideReader reader(given, config, diagnostics);
    for (const auto& [flag, path] : kFields) {
      if (flag == name) reader.set(path, yaml_scalar(given.values.back()));
    }
    if (name == "limit") reader.set_limit();
    if (name == "etcd") reader.set_etcd();
    if (name == "upstream") reader.set("upstreams.main.servers", yaml_list(given.values));
  }
}

void read_text(const FileText& text, Source source, Config& config) {
  if (auto* unreadable = std::get_if<Unreadable>(&text)) {
    source.diagnostics.fail_at({source.name, 0}, "", "cannot be read: " + unreadable->why);
    return;
  }
  auto parsed = parse_yaml(std::get<std::string>(text));
  if (auto* error = std::get_if<YamlError>(&parsed)) {
    source.diagnostics.fail_at({source.name, error->line}, "", error->what);
    return;
  }
  read_tree(source, std::get<Tree>(parsed), config);
}

FileText read_file(const std::string& name) {
  errno = 0;
  std::ifstream stream(name, std::ios::binary);
  std::string text(kLargestYaml + 1, '\0');
  if (stream) stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream && !stream.eof()) {
    return Unreadable{errno != 0 ? std::strerror(errno) : "input error"};
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));  // one byte too many is one too large
  return text;
}

}  // namespace

Loaded parse_config(const FileText& text, const std::string& file_name, const Overrides& overrides,
                    const ReadFile& read_named_file) {
  Config config;
  Diagnostics diagnostics({file_name, file_name.empty() ? 0 : 1});
  read_text(text, {diagnostics, file_name, read_named_file}, config);
  apply(overrides, config, diagnostics);
  // Without the file, all that it should have said would only look missing.
  if (diagnostics.good("")) {
    resolve_defaults(config, diagnostics);
    check_config(config, diagnostics);
  }
  Loaded loaded{std::nullopt, diagnostics.errors()};
  if (loaded.errors.empty()) loaded.config = std::move(config);
  return loaded;
}

Loaded load_config(const Sources& sources) {
  FileLooks looks;
  const auto read = [&looks](const std::string& name) {
    looks.emplace(name, look_of(name));
    return read_file(name);
  };
  const FileText text = sources.file.empty() ? std::string() : read(sources.file);
  Loaded loaded = parse_config(text, sources.file, sources.overrides, read);
  loaded.files = std::move(looks);
  return loaded;
}

std::vector<std::string> check_reload(const Config& running, const Config& next) {
  const auto before = to_json(running, Secrets::shown);
  const auto after = to_json(next, Secrets::shown);
  std::vector<std::string> errors;
  for (const char* field : {"listen", "admin", "workers", "replica", "coordination"}) {
    if (before.at(field) != after.at(field)) {
      errors.push_back(std::string(field) + ": a change needs a restart");
    }
  }
  return errors;
}

}  // namespace weir
