#pragma once

// The daemon's whole configuration: one plain struct, composed of each module's own options, with
// the defaults at the fields. It comes from three sources, flags over environment over a YAML file,
// and is validated whole: either every value is good, or every error is listed.
//
// All values and pure functions; any thread may use them. Only load_config touches the file system.
// The fields with their names, types and ranges are listed in schema.h.

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "coordination/options.h"
#include "daemon/file_look.h"
#include "proxy/http/limits.h"
#include "proxy/limit_fields.h"
#include "proxy/path.h"
#include "proxy/rule.h"
#include "proxy/upstream_options.h"

namespace weir {

struct LogOptions {
  enum class Level { trace, debug, info, warn, error, off };
  enum class Format { text, json };

  Level level = Level::info;
  Format format = Format::text;
  bool access = false;  // one line per request
};

struct Config {
  ServerAddress listen{"0.0.0.0", 4040};   // port 0: any free one
  ServerAddress admin{"127.0.0.1", 9464};  // port 0: any free one
  int workers = 0;                         // 0: one event loop per core
  std::chrono::milliseconds drain_timeout{30'000};
  LimitHeaders headers = LimitHeaders::ietf;
  EscapedSlashes escaped_slashes = EscapedSlashes::reject;
  std::vector<std::string> trusted_proxies;  // CIDRs or bare addresses, each well formed
  LogOptions log;
  http::Limits limits;
  http::Timeouts timeouts;
  std::string replica;  // empty: hostname-pid
  CoordinationOptions coordination;
  std::size_t max_resources = 100'000;
  std::size_t max_waiting = 100'000;
  std::vector<Rule> rules;  // the first match wins
  Rule default_rule{
      .name = "default", .matches = {}, .resource = "{path}", .limit = {}, .upstream = "main"};
  TenantSource tenant;
  std::vector<UpstreamOptions> upstreams;  // at least one; every rule's upstream is among them
};

// One setting from outside the file. `source` is what errors call it: "--listen", "WEIR_LISTEN".
struct Override {
  std::string source;
  std::vector<std::string> values;
};

// By the flag's name without dashes: listen, admin, upstream, limit, etcd, replica, workers,
// log-level, log-format. Only `upstream` and `etcd` may have more than one value.
using Overrides = std::map<std::string, Override, std::less<>>;

// What a configuration is made from; kept by the daemon, to load the file anew on a reload.
struct Sources {
  std::string file;  // empty: no file
  Overrides overrides;
};

// A configuration, or else at least one error: `file:line: rules[0].limit: what is wrong` in the
// order of the file, then `--limit: what is wrong`.
struct Loaded {
  std::optional<Config> config;
  std::vector<std::string> errors;
  FileLooks files = {};  // all that were asked for, as they looked just before
};

// A file that cannot be read comes back as the reason.
struct Unreadable {
  std::string why;
};
using FileText = std::variant<std::string, Unreadable>;
using ReadFile = std::function<FileText(const std::string& name)>;

// `file_name` is for messages, empty if there is no file. `read_file` opens the files that a
// configuration names for parts of itself (a service_config); without it these are errors.
Loaded parse_config(const FileText& text, const std::string& file_name,
                    const Overrides& overrides = {}, const ReadFile& read_file = {});

Loaded load_config(const Sources& sources);

// What keeps a running daemon from taking over `next`: the fields that need a restart and differ.
std::vector<std::string> check_reload(const Config& running, const Config& next);

// The effective configuration in the file's own shape, for /v1/config; passwords are masked.
nlohmann::ordered_json to_json(const Config& config);

}  // namespace weir
