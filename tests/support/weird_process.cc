#include "tests/support/weird_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

namespace weir::test {
namespace {

std::string weird_binary() {
  const char* given = ::getenv("WEIRD_BINARY");
  return given != nullptr ? given : WEIRD_BINARY;
}

Launch with_config(Launch launch, const std::filesystem::path& file) {
  if (!file.empty()) launch.arguments.insert(launch.arguments.begin(), {"--config", file.string()});
  return launch;
}

std::string indented(const std::string& text, std::string_view by) {
  std::istringstream in(text);
  std::string line, out;
  while (std::getline(in, line)) out.append(by).append(line).append("\n");
  return out;
}

void expect_no_sanitizer_report(const std::string& log) {
  for (const char* sign :
       {"AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:"}) {
    if (log.find(sign) == std::string::npos) continue;
    ADD_FAILURE() << "weird printed a sanitizer's report:\n" << log;
    return;
  }
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "weir-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

void replace_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path fresh = path.string() + ".new";
  write_file(fresh, text);
  std::filesystem::rename(fresh, path);
}

std::string Config::yaml() const {
  std::ostringstream out;
  out << "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"
      << "workers: " << workers << "\n"
      << "drain_timeout: " << drain_timeout << "\n"
      << "default: " << default_rule << "\n";
  if (!rest.empty()) out << rest << "\n";
  out << "upstreams:\n  main:\n    servers: [";
  for (std::size_t i = 0; i < servers.size(); ++i) out << (i == 0 ? "" : ", ") << servers[i];
  out << "]\n" << indented(upstream, "    ");
  return out.str();
}

WeirdProcess::WeirdProcess(const Config& config, const Launch& launch)
    : file_((write_file(directory_.path() / "weir.yaml", config.yaml()),
             directory_.path() / "weir.yaml")),
      child_(weird_binary(), with_config(launch, file_)) {
  learn_ports();
}

WeirdProcess::WeirdProcess(const std::filesystem::path& file, const Launch& launch)
    : file_(file), child_(weird_binary(), with_config(launch, file_)) {
  learn_ports();
}

void WeirdProcess::learn_ports() {
  const std::string listening = "listening on 127.0.0.1:", admin = ", admin on 127.0.0.1:";
  const auto number_after = [](const std::string& line, const std::string& words) {
    return static_cast<std::uint16_t>(std::stoi(line.substr(line.find(words) + words.size())));
  };
  // The end of the line may come later than its beginning.
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (child_.wait_for_stderr(admin) && std::chrono::steady_clock::now() < deadline) {
    const std::string text = log();
    const auto start = text.find(listening);
    const auto end = text.find('\n', start);
    if (end != std::string::npos) {
      const std::string line = text.substr(start, end - start);
      port_ = number_after(line, listening);
      admin_port_ = number_after(line, admin);
      return;
    }
    std::this_thread::sleep_for(1ms);
  }
  throw std::runtime_error("weird did not start: " + log());
}

WeirdProcess::~WeirdProcess() {
  signal(SIGTERM);
  if (const auto exit = wait_for_exit(); !exit) {
    ADD_FAILURE() << "weird did not stop; its log:\n" << log();
  } else if (exit->signal != 0 && !killed_) {
    ADD_FAILURE() << "weird was ended by signal " << exit->signal << "; its log:\n" << log();
  }
  expect_no_sanitizer_report(log());
  if (testing::Test::HasFailure() || std::uncaught_exceptions() > 0) {
    std::cerr << "the log of weird:\n" << log();
  }
}

void WeirdProcess::kill() {
  killed_ = true;
  signal(SIGKILL);
  wait_for_exit();
}

int WeirdProcess::open_files() const {
  int count = 0;
  for ([[maybe_unused]] const auto& file :
       std::filesystem::directory_iterator("/proc/" + std::to_string(child_.pid()) + "/fd")) {
    ++count;
  }
  return count;
}

long WeirdProcess::resident_kib() const {
  std::ifstream status("/proc/" + std::to_string(child_.pid()) + "/status");
  std::string word;
  while (status >> word) {
    long kib;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  throw std::runtime_error("no VmRSS");
}

double WeirdProcess::metric(std::string_view name, const Labels& labels) const {
  const Answer answer = admin("/metrics");
  if (answer.status != 200)
    throw std::runtime_error("/metrics answers " + std::to_string(answer.status));
  std::istringstream in(answer.body);
  std::string line;
  double sum = 0;
  while (std::getline(in, line)) {
    const auto name_end = line.find_first_of("{ ");
    if (std::string_view(line).substr(0, name_end) != name) continue;
    bool matches = true;
    for (const auto& [label, value] : labels) {
      matches &= line.find(label + "=\"" + value + "\"") != std::string::npos;
    }
    if (matches) sum += std::stod(line.substr(line.rfind(' ')));
  }
  return sum;
}

void WeirdProcess::wait_for_metric(std::string_view name, const Labels& labels,
                                   double at_least) const {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (metric(name, labels) < at_least) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw TimedOut(std::string(name) + " never came to " + std::to_string(at_least) + ":\n" +
                     admin("/metrics").body);
    }
    std::this_thread::sleep_for(10ms);
  }
}

Finished run_weird(const Launch& launch) {
  ChildProcess child(weird_binary(), launch);
  const auto exit = child.wait_for_exit();
  if (!exit) throw TimedOut("weird did not end: " + child.standard_error());
  expect_no_sanitizer_report(child.standard_error());
  EXPECT_EQ(exit->signal, 0) << child.standard_error();
  return {exit->code, child.standard_output(), child.standard_error()};
}

}  // namespace weir::test
