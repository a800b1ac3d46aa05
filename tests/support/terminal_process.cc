#include "tests/support/terminal_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <array>
#include <stdexcept>

namespace weir::test {

TerminalProcess::TerminalProcess(const std::string& program, std::vector<std::string> arguments,
                                 Size size) {
  int master = -1, slave = -1;
  winsize window{size.rows, size.columns, 0, 0};
  if (::openpty(&master, &slave, nullptr, nullptr, &window) != 0) throw std::runtime_error("pty");
  keyboard_and_screen_ = Descriptor(master);
  terminal_ = Descriptor(slave);
  ::fcntl(master, F_SETFD, FD_CLOEXEC);
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ > 0) return;
  ::login_tty(slave);
  ::execv(program.c_str(), argv.data());
  ::_exit(127);
}

TerminalProcess::~TerminalProcess() {
  if (exit_) return;
  signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void TerminalProcess::type(std::string_view keys) {
  if (::write(keyboard_and_screen_.get(), keys.data(), keys.size()) !=
      static_cast<ssize_t>(keys.size())) {
    throw std::runtime_error("nobody listens to the keyboard");
  }
}

void TerminalProcess::resize(Size size) {
  const winsize window{size.rows, size.columns, 0, 0};
  ::ioctl(keyboard_and_screen_.get(), TIOCSWINSZ, &window);
}

void TerminalProcess::signal(int number) {
  if (!exit_) ::kill(pid_, number);
}

bool TerminalProcess::read_some(Instant deadline) {
  const auto left = std::chrono::ceil<Span>(deadline - std::chrono::steady_clock::now()).count();
  pollfd watched{keyboard_and_screen_.get(), POLLIN, 0};
  if (left <= 0 || ::poll(&watched, 1, static_cast<int>(left)) <= 0) return false;
  std::array<char, 65536> piece;
  const ssize_t count = ::read(keyboard_and_screen_.get(), piece.data(), piece.size());
  if (count <= 0) return false;
  drawn_.append(piece.data(), static_cast<std::size_t>(count));
  return true;
}

bool TerminalProcess::wait_for(std::string_view text, Span timeout) {
  const Instant deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const std::size_t found = drawn_.find(text, seen_);
    if (found != std::string::npos) {
      seen_ = found + text.size();
      return true;
    }
    if (!read_some(deadline)) return false;
  }
}

std::optional<Exit> TerminalProcess::wait_for_exit(Span timeout) {
  const Instant deadline = std::chrono::steady_clock::now() + timeout;
  while (!exit_ && std::chrono::steady_clock::now() < deadline) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      exit_ = WIFEXITED(status) ? Exit{WEXITSTATUS(status), 0} : Exit{-1, WTERMSIG(status)};
    }
    while (read_some(std::chrono::steady_clock::now() + 10ms)) {
    }
  }
  return exit_;
}

termios TerminalProcess::settings() const {
  termios settings{};
  if (::tcgetattr(terminal_.get(), &settings) != 0) throw std::runtime_error("tcgetattr");
  return settings;
}

}  // namespace weir::test
