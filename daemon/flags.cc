#include "daemon/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace weir {

namespace {

struct FlagText {
  const char* name;
  const char* value;  // what stands for it in --help
  const char* help;
};

// Every flag that is a setting, also as WEIR_NAME.
constexpr FlagText kSettings[] = {
    {"config", "FILE", "Read the configuration from this YAML file"},
    {"listen", "ADDR", "Accept requests here (0.0.0.0:4040)"},
    {"admin", "ADDR", "Answer operators here: metrics, health, status (127.0.0.1:9464)"},
    {"upstream", "URL", "A server of the upstream `main`; give it again for more servers"},
    {"limit", "N/WINDOW", "What each path may have where no rule matches (100/1m)"},
    {"etcd", "URL[,URL...]", "Agree with other replicas through this etcd"},
    {"replica", "NAME", "This replica's name (hostname-pid)"},
    {"workers", "N", "Event loops; 0 is one per core (0)"},
    {"log-level", "LEVEL", "trace, debug, info, warn, error or off (info)"},
    {"log-format", "FORMAT", "text or json (text)"},
};

constexpr const char* kFooter = R"(
Flags override the environment (WEIR_ and the flag in upper case, - as _; lists by comma), which
overrides the file.

Examples:
  weird --upstream http://127.0.0.1:9000                  100 requests per path and minute
  weird --upstream http://10.0.0.1 --upstream http://10.0.0.2 --limit 20/1s
  weird --config weir.yaml --check                        list every error of a file
  WEIR_UPSTREAM=http://a:9000,http://b:9000 weird         the same by environment

Exit codes: 0 clean stop, 1 bad configuration or flags, 2 cannot bind or start.)";

bool is_list(std::string_view name) { return name == "upstream" || name == "etcd"; }

std::string variable_of(std::string_view name) {
  std::string variable = "WEIR_";
  for (char c : name) variable += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  return variable;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    std::size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    if (comma == text.size()) return parts;
    text.remove_prefix(comma + 1);
  }
}

Override make_override(std::string source, std::string_view name,
                       const std::vector<std::string>& given) {
  Override made{std::move(source), {}};
  for (const std::string& value : given) {
    if (is_list(name)) {
      std::ranges::move(split(value), std::back_inserter(made.values));
    } else {
      made.values.push_back(value);
    }
  }
  return made;
}

// The flag if it was given, else the variable if it is set to anything.
std::optional<Override> setting(std::string_view name, const CLI::Option& option,
                                const Environment& environment) {
  if (option.count() > 0) {
    return make_override("--" + std::string(name), name, option.as<std::vector<std::string>>());
  }
  std::string variable = variable_of(name);
  auto value = environment(variable);
  if (!value || value->empty()) return std::nullopt;
  return make_override(variable, name, {*value});
}

}  // namespace

Flags parse_flags(std::vector<std::string> arguments, const Environment& environment) {
  Flags flags;
  CLI::App app("Weir, a reverse proxy that lets exactly so much through.", "weird");
  app.set_version_flag("--version", "weird " WEIR_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(kFooter);
  app.allow_extras();  // to name all of them
  app.add_flag("--check", flags.check, "Validate the configuration, list every error and exit");
  for (const FlagText& text : kSettings) {
    auto* option = app.add_option("--" + std::string(text.name), text.help)->type_name(text.value);
    option->expected(1)->take_all();
  }
  try {
    std::ranges::reverse(arguments);  // the order in which CLI11 takes a vector
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    flags.answer = app.help();
    return flags;
  } catch (const CLI::CallForVersion& version) {
    flags.answer = std::string(version.what()) + "\n";
    return flags;
  } catch (const CLI::ParseError& error) {  // what came before it counts all the same
    flags.errors.emplace_back(error.what());
  }
  for (const std::string& extra : app.remaining()) {
    flags.errors.push_back(extra + ": unknown flag; see --help");
  }
  for (const FlagText& text : kSettings) {
    const CLI::Option* option = app.get_option("--" + std::string(text.name));
    auto given = setting(text.name, *option, environment);
    if (!given) continue;
    if (given->values.size() > 1 && !is_list(text.name)) {
      flags.errors.push_back(given->source + ": given more than once");
    } else if (std::string_view(text.name) == "config") {
      if (given->values.back().empty()) flags.errors.push_back(given->source + ": must be a file");
      flags.sources.file = given->values.back();
    } else {
      flags.sources.overrides.emplace(text.name, *std::move(given));
    }
  }
  return flags;
}

}  // namespace weir
