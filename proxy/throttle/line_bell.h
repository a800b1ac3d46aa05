#pragma once

// One loop's part in serving a throttle's line: while a request of this loop waits in it, the line
// is served when it is due. Loops that ring for the same line do not get in each other's way. Owned
// by its loop's thread; outlives those who wait.

#include "proxy/http/alarm.h"
#include "proxy/throttle/throttle_line.h"

namespace weir {

class LineBell {
 public:
  LineBell(http::Loop& loop, ThrottleLine& line);

  // One more waits, and the line is due then; and one less.
  void begin(SteadyTime due);
  void end();

 private:
  void ring();
  void set(SteadyTime due);
  SteadyTime now() const { return loop_.clock().steady_now(); }

  http::Loop& loop_;
  ThrottleLine& line_;
  http::Alarm alarm_;
  std::size_t waiting_ = 0;
  SteadyTime due_ = SteadyTime::max();  // as the alarm is set
};

}  // namespace weir
