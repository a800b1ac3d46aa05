#pragma once

// A program run by a test on a terminal of its own, as a person would: what it draws is read, keys
// are typed, the window changes its size. Gone at the latest when the test is. One thread.

#include <sys/types.h>
#include <termios.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/socket.h"

namespace weir::test {

class TerminalProcess {
 public:
  struct Size {
    unsigned short columns, rows;
  };
  TerminalProcess(const std::string& program, std::vector<std::string> arguments, Size size);
  ~TerminalProcess();  // kills it if it is still there
  TerminalProcess(const TerminalProcess&) = delete;
  TerminalProcess& operator=(const TerminalProcess&) = delete;

  void type(std::string_view keys);
  void resize(Size size);
  void signal(int number);
  // True once it has drawn `text` behind what was waited for before.
  bool wait_for(std::string_view text, Span timeout = patience);
  // Reads on meanwhile. nullopt: still running then.
  std::optional<Exit> wait_for_exit(Span timeout = patience);
  // All that was drawn so far.
  const std::string& drawn() const { return drawn_; }
  // How the terminal is set.
  termios settings() const;

 private:
  bool read_some(Instant deadline);

  Descriptor keyboard_and_screen_;
  Descriptor terminal_;  // kept open to look at its settings
  pid_t pid_ = -1;
  std::optional<Exit> exit_;
  std::string drawn_;
  std::size_t seen_ = 0;
};

}  // namespace weir::test
