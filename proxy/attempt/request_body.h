#pragma once

// A request's body behind what came with its head: read from the client once, for all attempts.
// Whichever attempt has sent all that is there reads on, and wakes the others that wait for more.
// Where the body is kept, each attempt takes it from there at its own pace, and one that begins
// later takes all of it; elsewhere there is one attempt, which takes it as it comes.
//
// Owned by its call, on the exchange's loop. For each attempt: next(), write, taken(); nothing
// there: wait_for_more().

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "proxy/attempt/replay_body.h"
#include "proxy/http/connection.h"

namespace weir {

class RequestBody {
 public:
  enum class Fault { none, malformed, too_slow };

  // How far one attempt has come.
  struct Place {
    explicit Place(http::Loop& loop) : more(loop) {}
    std::size_t sent = 0;  // of what is kept
    std::size_t sending = 0;
    http::Wakeup more;
  };

  explicit RequestBody(http::Connection& client) : client_(client) {}

  // Keeps it, until it has become too large.
  void keep(ReplayBody& replay) { replay_ = &replay; }
  bool overflowed() const { return replay_ && replay_->overflowed(); }
  // Called then, once: only the attempt at that place may go on. No other has sent more.
  void on_overflow(std::function<void(const Place&)> handler) { on_overflow_ = std::move(handler); }

  // What to send next; nothing, if it has to come first.
  http::Pieces next(Place& place);
  void taken(Place& place);
  // Returns when it is worth to look again.
  http::Task<void> wait_for_more(Place& place);
  // Ends a wait at this place: whoever else is there may read.
  void interrupt(Place& place);

  // All of it was sent from there.
  bool whole(const Place& place) const;
  // No more will come, whole or not.
  bool over(const Place& place) const;
  Fault fault() const { return fault_; }

 private:
  bool kept() const { return replay_ && !replay_->overflowed(); }
  bool keep(const http::PieceFrame& frame, std::string_view payload);
  http::Pieces kept_from(Place& place) const;

  http::Connection& client_;
  ReplayBody* replay_ = nullptr;
  std::function<void(const Place&)> on_overflow_;
  Place* reader_ = nullptr;  // who waits for the client
  std::vector<Place*> waiting_;
  bool ended_ = false;  // the client sends no more
  Fault fault_ = Fault::none;
  // What is not kept and on its way:
  std::optional<http::PieceFrame> frame_;
  std::size_t wire_ = 0;
};

}  // namespace weir
