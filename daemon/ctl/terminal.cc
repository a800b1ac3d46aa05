#include "daemon/ctl/terminal.h"

#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace weir::ctl {
namespace {

constexpr std::string_view kOpen = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kClose = "\x1b[?25h\x1b[?1049l";

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* const given = std::getenv(name);
  const long value = given ? std::strtol(given, nullptr, 10) : 0;
  return value > 0 && value < 10'000 ? static_cast<std::size_t>(value) : otherwise;
}

}  // namespace

bool Terminal::present() { return ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO); }

Screen Terminal::screen() {
  Screen screen;
  screen.glyphs =
      std::string_view{::nl_langinfo(CODESET)} == "UTF-8" ? Glyphs::unicode : Glyphs::ascii;
  winsize size{};
  const bool told = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  screen.width = told ? size.ws_col : from_environment("COLUMNS", screen.width);
  screen.height = told ? size.ws_row : from_environment("LINES", screen.height);
  return screen;
}

Terminal::Terminal() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  if (signals_ < 0) throw std::runtime_error("no signalfd");
  ::tcgetattr(STDIN_FILENO, &before_);
  termios keys = before_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  keys.c_cc[VSUSP] = _POSIX_VDISABLE;  // stopped, it could not clean up
  ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  put(kOpen);
}

Terminal::~Terminal() {
  put(kClose);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  ::close(signals_);
}

// In one write, and over what was there, so that nothing flickers.
void Terminal::draw(const std::vector<std::string>& lines) {
  std::string out = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out.append(i == 0 ? "" : "\r\n").append(lines[i]).append("\x1b[K");
  }
  put(out + "\x1b[J");
}

Terminal::Woken Terminal::wait(std::chrono::milliseconds time) {
  std::array<pollfd, 2> watched{pollfd{signals_, POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0}};
  if (::poll(watched.data(), watched.size(), static_cast<int>(time.count())) <= 0) {
    return Woken::by_time;
  }
  if (watched[0].revents != 0) {
    signalfd_siginfo info{};
    const ssize_t n = ::read(signals_, &info, sizeof info);
    const bool size = n == sizeof info && info.ssi_signo == SIGWINCH;
    return size ? Woken::by_size : Woken::to_quit;
  }
  char key = 0;
  const ssize_t n = ::read(STDIN_FILENO, &key, 1);
  return n <= 0 || key == 'q' || key == 4 ? Woken::to_quit : Woken::by_time;
}

}  // namespace weir::ctl
