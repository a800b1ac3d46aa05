#pragma once

// The terminal that `weirctl top` draws on, as long as the object lives: a screen of its own,
// without a cursor, keys heard one by one. Whatever ends the program (Ctrl-C, a signal, an error),
// the terminal is as it was. One at a time; one thread.

#include <termios.h>

#include <chrono>
#include <string>
#include <vector>

#include "daemon/ctl/top_frame.h"

namespace weir::ctl {

class Terminal {
 public:
  // Whether there is one, on standard input and output.
  static bool present();
  // What it can show; from $COLUMNS and $LINES, or else the usual size, where there is none.
  static Screen screen();

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void draw(const std::vector<std::string>& lines);
  enum class Woken { by_time, by_size, to_quit };
  // Until the time is over, or somebody wants something.
  Woken wait(std::chrono::milliseconds time);

 private:
  int signals_ = -1;
  termios before_{};
};

}  // namespace weir::ctl
