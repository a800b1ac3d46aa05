// weirctl: the operator's tool. Asks a daemon's admin address and prints what it says.

#include <CLI/CLI.hpp>
#include <asio/ip/tcp.hpp>
#include <iostream>
#include <iterator>
#include <string>

#include "coordination/keyspace.h"
#include "daemon/config.h"

namespace {

struct Answer {
  int status = 0;  // 0: nobody answered
  std::string body;
};

Answer get(const std::string& admin, const std::string& path) {
  const std::size_t colon = admin.rfind(':');
  std::string host = admin.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  asio::ip::tcp::iostream stream;
  stream.connect(host, colon == admin.npos ? "9464" : admin.substr(colon + 1));
  stream << "GET " << path << " HTTP/1.0\r\n\r\n" << std::flush;
  std::string version, line;
  Answer answer;
  stream >> version >> answer.status;
  std::getline(stream, line);
  while (std::getline(stream, line) && line != "\r") {
  }
  answer.body.assign(std::istreambuf_iterator<char>(stream), {});
  return answer;
}

int print_page(const std::string& admin, const std::string& path) {
  const Answer answer = get(admin, path);
  if (answer.status == 0) {
    std::cerr << "weirctl: no answer from " << admin
              << "; is weird running, and is this its admin address?\n";
    return 2;
  }
  std::cout << answer.body;
  return answer.status == 200 ? 0 : 1;
}

int check_file(const std::string& file) {
  const weir::Loaded loaded = weir::load_config({file, {}});
  for (const std::string& error : loaded.errors) std::cerr << error << "\n";
  if (loaded.errors.empty()) std::cout << "the configuration is good\n";
  return loaded.errors.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The operator's tool for weird.", "weirctl");
  app.set_version_flag("--version", "weirctl " WEIR_VERSION);
  app.require_subcommand(1);
  std::string admin = "127.0.0.1:9464";
  app.add_option("--admin", admin, "The daemon's admin address")
      ->envname("WEIR_ADMIN")
      ->capture_default_str();
  std::string file;
  const CLI::App* status = app.add_subcommand("status", "What the daemon says of itself");
  const CLI::App* ready = app.add_subcommand("ready", "Whether it is ready; exits with 1 if not");
  const CLI::App* config = app.add_subcommand("config", "The configuration in effect");
  const CLI::App* metrics = app.add_subcommand("metrics", "Its metrics");
  CLI::App* resources =
      app.add_subcommand("resources", "The busiest resources, or one by its name");
  int top = 20;
  std::string name;
  resources->add_option("--top", top, "How many")->check(CLI::Range(1, 100'000));
  resources->add_option("NAME", name, "A resource, as in /reports/1");
  const CLI::App* replicas = app.add_subcommand("replicas", "The replicas that are live");
  CLI::App* check = app.add_subcommand("check", "Validate a configuration file");
  check->add_option("FILE", file, "The file")->required();
  CLI11_PARSE(app, argc, argv);
  if (*status) return print_page(admin, "/v1/status");
  if (*ready) return print_page(admin, "/readyz");
  if (*config) return print_page(admin, "/v1/config");
  if (*metrics) return print_page(admin, "/metrics");
  if (*replicas) return print_page(admin, "/v1/replicas");
  if (*resources) {
    return print_page(admin, name.empty() ? "/v1/resources?top=" + std::to_string(top)
                                          : "/v1/resources?name=" + weir::percent_encode(name));
  }
  return check_file(file);
}
