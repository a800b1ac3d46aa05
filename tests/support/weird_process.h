#pragma once

// The real program, `weird`, run on ports of its own choosing with a configuration of the test's.
// When the test is done it is stopped as an operator would, and the test fails if it does not stop,
// was ended by a signal, or printed a sanitizer's report.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/raw_client.h"
#include "tests/support/sanitized.h"

namespace weir::test {

// A directory for one test, removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// In place, as `echo >` does it: a reader may see half of it.
void write_file(const std::filesystem::path& path, std::string_view text);
// By renaming a whole new file over the old one.
void replace_file(const std::filesystem::path& path, std::string_view text);

// A configuration that holds nobody back; what a test does not care about is left out.
struct Config {
  std::vector<std::string> servers;  // upstreams.main.servers
  std::string upstream = "";         // further fields of upstreams.main, one per line
  std::string rest = "";             // further top-level fields
  int workers = 2;
  std::string drain_timeout = "1s";
  std::string default_rule = "{unlimited: true}";

  std::string yaml() const;
};

class WeirdProcess {
 public:
  // Returns once it listens; throws, with what it wrote, if it never does.
  explicit WeirdProcess(const Config& config, const Launch& launch = {});
  // With a file that is there already (or none, if `file` is empty) and whatever else `launch`
  // says.
  WeirdProcess(const std::filesystem::path& file, const Launch& launch);
  ~WeirdProcess();

  std::uint16_t port() const { return port_; }
  std::uint16_t admin_port() const { return admin_port_; }
  const std::filesystem::path& config_file() const { return file_; }
  void write_config(const Config& config) { replace_file(file_, config.yaml()); }

  void signal(int number) { child_.signal(number); }
  // SIGKILL; then its end is no failure.
  void kill();
  std::optional<Exit> wait_for_exit(Span timeout = patience) {
    return child_.wait_for_exit(timeout);
  }
  bool wait_for_log(std::string_view text) { return child_.wait_for_stderr(text); }
  std::string log() const { return child_.standard_error(); }
  std::string standard_output() const { return child_.standard_output(); }
  long resident_kib() const;
  int open_files() const;

  Answer admin(std::string_view target) const { return get(admin_port_, target); }
  using Labels = std::map<std::string, std::string>;
  // The sum of the series of that name that have these labels, 0 if none has.
  double metric(std::string_view name, const Labels& labels = {}) const;
  // Waits until it is at least that much.
  void wait_for_metric(std::string_view name, const Labels& labels, double at_least) const;

 private:
  void learn_ports();

  TemporaryDirectory directory_;
  std::filesystem::path file_;
  ChildProcess child_;
  std::uint16_t port_ = 0;
  std::uint16_t admin_port_ = 0;
  bool killed_ = false;
};

// Runs `weird` to its end, for flags that only print something and configurations that are refused.
struct Finished {
  int code;
  std::string output, error;
};
Finished run_weird(const Launch& launch);

}  // namespace weir::test
