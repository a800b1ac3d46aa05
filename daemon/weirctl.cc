// weirctl: the operator's tool. Asks a daemon's admin address and prints what it says.

#include <CLI/CLI.hpp>
#include <clocale>
#include <functional>
#include <iostream>
#include <optional>
#include <string>

#include "coordination/keyspace.h"
#include "daemon/config.h"
#include "daemon/ctl/admin_client.h"
#include "daemon/ctl/terminal.h"
#include "daemon/ctl/top_frame.h"
#include "daemon/ctl/views.h"
#include "daemon/system.h"

namespace weir::ctl {
namespace {

constexpr int kGood = 0;
constexpr int kNo = 1;  // not ready, a bad file, no such resource, bad flags
constexpr int kNoAnswer = 2;

constexpr const char* kFooter = R"(
Every command but metrics takes --json: what the daemon says as it stands, and from check and top
the same facts as JSON.

Examples:
  weirctl status
  weirctl resources /reports/1                      one resource, with its claims by replica
  weirctl explain '/reports/1?full=1' --method POST --header 'X-Tenant: a'
  weirctl --admin 10.0.0.7:9464 top                 live; q or Ctrl-C ends it

Exit codes: 0 good, 1 the answer is no (not ready, a bad file, no such resource) or the command is
wrong, 2 nobody answers at the admin address.)";

// What the command line says.
struct Request {
  std::string admin = "127.0.0.1:9464";
  bool json = false;
  int top = 20;
  std::string name, file;
  struct {
    std::string path, method, host, client;
    std::vector<std::string> headers;
  } explain;
  bool once = false;
  double interval = 1;
};

using Show = std::function<std::string(const Json&)>;

WallTime wall_now() { return SystemClock().wall_now(); }

int no_answer(const Request& request, const Answer& answer) {
  std::cerr << "weirctl: no answer from " << request.admin << ": " << answer.fault
            << "; is weird running, and is this its admin address (--admin)?\n";
  return kNoAnswer;
}

// What the daemon says is wrong with the question, as it says it.
int refused(const Answer& answer) {
  const Json page = Json::parse(answer.body, nullptr, false);
  std::cerr << "weirctl: the daemon answers " << answer.status << ": " << text_at(page, "error")
            << "\n";
  return kNo;
}

int print_page(const Request& request, const std::string& page, const Show& show) {
  const Answer answer = ask(request.admin, page);
  if (answer.status == 0) return no_answer(request, answer);
  const bool told = answer.status == 200 || answer.status == 503;  // not ready
  if (!told) return refused(answer);
  const Json json = show ? Json::parse(answer.body, nullptr, false) : Json();
  const std::string shown = show && !json.is_discarded() ? show(json) : answer.body;
  std::cout << (request.json ? answer.body : shown);
  return answer.status == 200 ? kGood : kNo;
}

int print_resource(const Request& request) {
  bool found = false;
  const int code = print_page(request, "/v1/resources?name=" + percent_encode(request.name),
                              [&](const Json& page) {
                                found = !member(page, "resources").empty();
                                return show_resource(page, wall_now());
                              });
  if (code != kGood || found) return code;
  if (!request.json) {
    std::cerr << "weirctl: this replica knows no resource " << harmless(request.name)
              << "; nobody has asked it for one\n";
  }
  return kNo;
}

int explain(const Request& request) {
  const auto& asked = request.explain;
  std::string page = "/v1/explain?path=" + percent_encode(asked.path);
  const auto add = [&page](const char* name, const std::string& value) {
    if (!value.empty()) page += std::string{"&"} + name + "=" + percent_encode(value);
  };
  add("method", asked.method);
  add("host", asked.host);
  add("client", asked.client);
  for (const std::string& header : asked.headers) add("header", header);
  return print_page(request, page, [](const Json& json) { return show_explain(json, wall_now()); });
}

int check_file(const Request& request) {
  const Loaded loaded = load_config({request.file, {}});
  const bool good = loaded.errors.empty();
  if (request.json) {
    const nlohmann::ordered_json verdict{{"good", good}, {"errors", loaded.errors}};
    std::cout << verdict.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return good ? kGood : kNo;
  }
  for (const std::string& error : loaded.errors) std::cerr << error << "\n";
  if (good) std::cout << "the configuration is good\n";
  return good ? kGood : kNo;
}

Snapshot look(const Request& request, std::size_t rows) {
  Snapshot snapshot;
  const auto page = [&](const std::string& path) {
    if (!snapshot.fault.empty()) return std::string{};
    Answer answer = ask(request.admin, path);
    if (answer.status == 0)
      snapshot.fault = "no answer from " + request.admin + ": " + answer.fault;
    return std::move(answer.body);
  };
  const auto json = [&](const std::string& path) {
    return Json::parse(page(path), nullptr, false);
  };
  snapshot.status = json("/v1/status");
  snapshot.resources = json("/v1/resources?top=" + std::to_string(std::max<std::size_t>(1, rows)));
  snapshot.upstreams = json("/v1/upstreams");
  snapshot.requests = requests_by_outcome(page("/metrics"));
  snapshot.at = SystemClock().now();
  return snapshot;
}

int top_once(const Request& request) {
  const Screen screen = Terminal::screen();
  const Snapshot now = look(request, screen.height);
  if (!now.fault.empty()) {
    std::cerr << "weirctl: " << now.fault << "\n";
    return kNoAnswer;
  }
  if (request.json) {
    std::cout << to_json(now).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return kGood;
  }
  for (const std::string& line : top_frame(now, nullptr, screen)) std::cout << line << "\n";
  return kGood;
}

// A daemon that goes away meanwhile is waited for.
int top_live(const Request& request) {
  const auto interval =
      std::chrono::milliseconds(static_cast<std::int64_t>(request.interval * 1000));
  Terminal terminal;
  std::optional<Snapshot> last, now = look(request, Terminal::screen().height);
  for (;;) {
    terminal.draw(top_frame(*now, last ? &*last : nullptr, Terminal::screen()));
    const Terminal::Woken woken = terminal.wait(interval);
    if (woken == Terminal::Woken::to_quit) return kGood;
    if (woken == Terminal::Woken::by_size) continue;
    last = std::move(now);
    now = look(request, Terminal::screen().height);
  }
}

using Command = std::function<int(const Request&)>;

Command page_command(const std::string& path, Show show) {
  return [path, show = std::move(show)](const Request& request) {
    return print_page(request, path, show);
  };
}

// The commands that only ask for one page.
void add_pages(CLI::App& app, Command& chosen) {
  const auto add = [&](const char* name, const char* help, const char* path, Show show) {
    app.add_subcommand(name, help)
        ->callback([&chosen, command = page_command(path, std::move(show))] { chosen = command; });
  };
  add("status", "What the daemon says of itself", "/v1/status",
      [](const Json& page) { return show_status(page, wall_now()); });
  add("ready", "Whether it is ready; exits with 1 if not", "/readyz", show_ready);
  add("replicas", "The replicas that are live", "/v1/replicas", show_replicas);
  add("upstreams", "How each upstream is faring", "/v1/upstreams",
      [](const Json& page) { return show_upstreams(page, wall_now()); });
  add("config", "The configuration in effect, as JSON", "/v1/config", nullptr);
  add("metrics", "Its metrics, as Prometheus reads them", "/metrics", nullptr);
}

void add_others(CLI::App& app, Request& request, Command& chosen) {
  CLI::App* resources =
      app.add_subcommand("resources", "The busiest resources, or one by its name");
  resources->add_option("--top", request.top, "How many")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  resources->add_option("NAME", request.name, "A resource, as in /reports/1");
  resources->callback([&chosen] {
    chosen = [](const Request& asked) {
      if (!asked.name.empty()) return print_resource(asked);
      return print_page(
          asked, "/v1/resources?top=" + std::to_string(asked.top),
          [](const Json& page) { return show_resources(page, Terminal::screen().glyphs); });
    };
  });
  CLI::App* question = app.add_subcommand(
      "explain", "What would happen to a request now, and why; nothing is sent or counted");
  auto& asked = request.explain;
  question->add_option("PATH", asked.path, "The request target, as in /reports/1?full=1")
      ->required();
  question->add_option("--method", asked.method, "Its method (GET)")->type_name("METHOD");
  question->add_option("--host", asked.host, "Its Host")->type_name("HOST");
  question->add_option("--client", asked.client, "The address it comes from (127.0.0.1)")
      ->type_name("ADDRESS");
  question->add_option("--header", asked.headers, "A field; give it again for more")
      ->type_name("NAME:VALUE")
      ->expected(1)
      ->take_all();
  question->callback([&chosen] { chosen = explain; });
  CLI::App* check = app.add_subcommand("check", "Validate a configuration file; asks no daemon");
  check->add_option("FILE", request.file, "The file")->required();
  check->callback([&chosen] { chosen = check_file; });
  CLI::App* top = app.add_subcommand("top", "A live view; once, where there is no terminal");
  top->add_flag("--once", request.once, "Print it once");
  top->add_option("--interval", request.interval, "Seconds between looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  top->callback([&chosen] {
    chosen = [](const Request& live) {
      const bool once = live.once || live.json || !Terminal::present();
      return once ? top_once(live) : top_live(live);
    };
  });
}

int run(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");
  CLI::App app("The operator's tool for weird: asks its admin address.", "weirctl");
  app.set_version_flag("--version", "weirctl " WEIR_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  app.fallthrough();  // --admin and --json may stand behind the command too
  Request request;
  Command chosen;
  app.add_option("--admin", request.admin, "The daemon's admin address")
      ->envname("WEIR_ADMIN")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_flag("--json", request.json, "Print JSON");
  add_pages(app, chosen);
  add_others(app, request, chosen);
  try {
    app.parse(argc, argv);
    if (chosen) return chosen(request);
    std::cerr << "weirctl: no command; see weirctl --help\n";
    return kNo;
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    std::cerr << "weirctl: " << error.what() << "; see weirctl --help\n";
    return kNo;
  } catch (const std::exception& error) {
    std::cerr << "weirctl: " << error.what() << "\n";
    return kNo;
  }
}

}  // namespace
}  // namespace weir::ctl

int main(int argc, char** argv) { return weir::ctl::run(argc, argv); }
