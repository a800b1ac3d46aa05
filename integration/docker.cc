#include "integration/docker.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace weir::test {
namespace {

nlohmann::json inspect(const std::string& id) {
  return nlohmann::json::parse(docker({"inspect", id})).at(0);
}

}  // namespace

std::string docker(std::vector<std::string> arguments, Span timeout) {
  std::string command = "docker";
  for (const std::string& argument : arguments) command += " " + argument;
  Ran ran = run_program("/usr/bin/env",
                        {.arguments =
                             [&] {
                               arguments.insert(arguments.begin(), "docker");
                               return std::move(arguments);
                             }()},
                        timeout);
  if (ran.code != 0) throw std::runtime_error(command + ": " + ran.error);
  while (ran.output.ends_with('\n')) ran.output.pop_back();
  return ran.output;
}

Container::Container(std::string project, std::string id)
    : project_(std::move(project)), id_(std::move(id)) {}

std::string Container::address(const std::string& network) const {
  const auto networks = inspect(id_).at("NetworkSettings").at("Networks");
  const auto found = networks.find(full_name(network));
  return found == networks.end() ? "" : found->at("IPAddress").get<std::string>();
}

std::string Container::log() const {
  const Ran ran = run_program("/usr/bin/env", {.arguments = {"docker", "logs", id_}});
  return ran.output + ran.error;
}

void Container::kill() { docker({"kill", id_}); }
void Container::stop() { docker({"stop", "-t", "40", id_}); }
void Container::start() { docker({"start", id_}); }
void Container::pause() { docker({"pause", id_}); }
void Container::unpause() { docker({"unpause", id_}); }

void Container::disconnect(const std::string& network) {
  const auto told = inspect(id_).at("NetworkSettings").at("Networks").at(full_name(network));
  aliases_[network] = told.at("Aliases").get<std::vector<std::string>>();
  docker({"network", "disconnect", full_name(network), id_});
}

void Container::connect(const std::string& network) {
  std::vector<std::string> arguments{"network", "connect"};
  for (const std::string& alias : aliases_.at(network)) {
    arguments.insert(arguments.end(), {"--alias", alias});
  }
  arguments.insert(arguments.end(), {full_name(network), id_});
  docker(std::move(arguments));
  aliases_.erase(network);
}

}  // namespace weir::test
