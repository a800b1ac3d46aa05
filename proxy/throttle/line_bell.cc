#include "proxy/throttle/line_bell.h"

#include <algorithm>

namespace weir {

LineBell::LineBell(http::Loop& loop, ThrottleLine& line)
    : loop_(loop), line_(line), alarm_(loop, [this] { ring(); }) {}

void LineBell::begin(SteadyTime due) {
  ++waiting_;
  if (due < due_) set(due);
}

void LineBell::end() {
  if (--waiting_ > 0) return;
  due_ = SteadyTime::max();
  alarm_.clear();
}

void LineBell::ring() { set(line_.serve(now())); }

void LineBell::set(SteadyTime due) {
  due_ = due;
  if (due == SteadyTime::max()) return alarm_.clear();
  alarm_.set(std::max(due - now(), SteadyTime::duration::zero()));
}

}  // namespace weir
