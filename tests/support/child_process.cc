#include "tests/support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace weir::test {
namespace {

std::pair<Descriptor, Descriptor> make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<std::string> environment_for(const Launch& launch) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("WEIR_")) entries.emplace_back(*entry);
  }
  for (const auto& [name, value] : launch.environment) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ChildProcess::ChildProcess(const std::string& program, const Launch& launch) {
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  start(program, launch, out_write.get(), err_write.get());
  follower_ = std::thread([this, out = std::move(out_read), err = std::move(err_read)]() mutable {
    follow(std::move(out), std::move(err));
  });
}

ChildProcess::~ChildProcess() {
  signal(SIGKILL);
  follower_.join();
}

void ChildProcess::start(const std::string& program, const Launch& launch, int out, int err) {
  // Everything that allocates comes before fork: this process has threads.
  std::vector<std::string> arguments{program};
  arguments.insert(arguments.end(), launch.arguments.begin(), launch.arguments.end());
  std::vector<std::string> environment = environment_for(launch);
  const std::vector<char*> argv = pointers_to(arguments);
  const std::vector<char*> envp = pointers_to(environment);

  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed takes it along
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  if (launch.open_files) {
    const rlimit limit{*launch.open_files, *launch.open_files};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ::execve(program.c_str(), argv.data(), envp.data());
  ::_exit(127);
}

void ChildProcess::follow(Descriptor out, Descriptor err) {
  while (out.get() >= 0 || err.get() >= 0) {
    std::array<pollfd, 2> watched{pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0}};
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    for (Descriptor* pipe : {&out, &err}) {
      if (watched[pipe == &err].revents == 0) continue;
      std::array<char, 65536> piece;
      const ssize_t count = ::read(pipe->get(), piece.data(), piece.size());
      if (count <= 0) {
        pipe->close();
        continue;
      }
      const std::lock_guard lock(mutex_);
      (pipe == &out ? output_ : error_).append(piece.data(), static_cast<std::size_t>(count));
      changed_.notify_all();
    }
  }
  // Waits without reaping, so that nobody signals a process that has got the same id since.
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  const std::lock_guard lock(mutex_);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  exit_ = WIFEXITED(status) ? Exit{WEXITSTATUS(status), 0} : Exit{-1, WTERMSIG(status)};
  changed_.notify_all();
}

void ChildProcess::signal(int number) {
  const std::lock_guard lock(mutex_);
  if (!exit_) ::kill(pid_, number);
}

std::optional<Exit> ChildProcess::wait_for_exit(Span timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return exit_.has_value(); });
  return exit_;
}

bool ChildProcess::wait_for_stderr(std::string_view text, Span timeout) {
  const auto found = [&] { return error_.find(text) != std::string::npos; };
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return found() || exit_.has_value(); });
  return found();
}

std::string ChildProcess::standard_output() const {
  const std::lock_guard lock(mutex_);
  return output_;
}

std::string ChildProcess::standard_error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

Ran run_program(const std::string& program, const Launch& launch, Span timeout) {
  ChildProcess process(program, launch);
  const auto exit = process.wait_for_exit(timeout);
  if (!exit) throw TimedOut(program);
  return {exit->code, process.standard_output(), process.standard_error()};
}

}  // namespace weir::test
