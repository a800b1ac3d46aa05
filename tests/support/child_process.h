#pragma once

// A program run by a test: no shell, its output captured as it comes, gone at the latest when the
// test is.

#include <sys/resource.h>
#include <sys/types.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/socket.h"

namespace weir::test {

struct Launch {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment{};  // added to ours, less every WEIR_*
  std::optional<rlim_t> open_files{};                // RLIMIT_NOFILE
};

struct Exit {
  int code = -1;   // if it exited by itself
  int signal = 0;  // if a signal ended it
};

class ChildProcess {
 public:
  ChildProcess(const std::string& program, const Launch& launch);
  ~ChildProcess();  // kills it if it is still there
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number);
  // nullopt: still running then.
  std::optional<Exit> wait_for_exit(Span timeout = patience);
  // True once `text` is in what it wrote to stderr; false if it never came, or the program ended
  // without.
  bool wait_for_stderr(std::string_view text, Span timeout = patience);
  std::string standard_output() const;
  std::string standard_error() const;

 private:
  void start(const std::string& program, const Launch& launch, int out, int err);
  void follow(Descriptor out, Descriptor err);

  pid_t pid_ = -1;
  std::thread follower_;  // reads both pipes to their ends, then reaps the child

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // Guarded by mutex_:
  std::string output_, error_;
  std::optional<Exit> exit_;
};

// What a program left behind.
struct Ran {
  int code = -1;
  std::string output, error;
};
Ran run_program(const std::string& program, const Launch& launch, Span timeout = patience);

}  // namespace weir::test
