#include "integration/project.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace weir::test {
namespace {

const std::string top = WEIR_SOURCES;
const std::string remove_project = top + "/integration/remove-project";

std::string unique_name() {
  static int projects = 0;
  return "weir-integration-" + std::to_string(::getpid()) + "-" + std::to_string(++projects);
}

// A process that waits for the descriptor that is returned to be closed.
Descriptor start_undertaker(const std::string& name) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  const Descriptor input(ends[0]);
  Descriptor ours(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(input.get(), STDIN_FILENO);
    ::execl(remove_project.c_str(), remove_project.c_str(), name.c_str(), "wait", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error(remove_project);
  return ours;
}

bool has_compose_plugin() {
  static const bool has =
      run_program("/usr/bin/env", {.arguments = {"docker", "compose", "version"}}).code == 0;
  return has;
}

}  // namespace

Project::Project(std::vector<std::string> files, std::map<std::string, std::string> environment)
    : name_(unique_name()),
      files_(std::move(files)),
      environment_(std::move(environment)),
      until_we_end_(start_undertaker(name_)) {}

Project::~Project() {
  try {
    run_program(remove_project, {.arguments = {name_}}, 150s);
  } catch (const TimedOut&) {  // then the other process goes on with it
  }
}

std::string Project::compose(std::vector<std::string> arguments) const {
  std::vector<std::string> all;
  if (has_compose_plugin()) {
    all = {"docker", "compose"};
  } else {
    all = {"docker-compose"};
  }
  all.insert(all.end(),
             {"-p", name_, "--project-directory", top, "-f", top + "/docker-compose.yml"});
  for (const std::string& file : files_) all.insert(all.end(), {"-f", top + "/" + file});
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Ran ran =
      run_program("/usr/bin/env", {.arguments = all, .environment = environment_}, 120s);
  if (ran.code != 0)
    throw std::runtime_error("docker-compose " + arguments.at(0) + ": " + ran.error);
  return ran.output;
}

std::vector<Container> Project::containers(const std::string& service) const {
  std::istringstream lines(
      docker({"ps", "-a", "--no-trunc", "--filter", "label=com.docker.compose.project=" + name_,
              "--filter", "label=com.docker.compose.service=" + service, "--format",
              "{{.Label \"com.docker.compose.container-number\"}} {{.ID}}"}));
  std::map<int, std::string> by_number;
  int number = 0;
  std::string id;
  while (lines >> number >> id) by_number[number] = id;
  std::vector<Container> containers;
  for (const auto& numbered : by_number) containers.emplace_back(name_, numbered.second);
  return containers;
}

Container Project::container(const std::string& service) const {
  std::vector<Container> found = containers(service);
  if (found.size() != 1) throw std::runtime_error("not one of " + service);
  return std::move(found.front());
}

}  // namespace weir::test
