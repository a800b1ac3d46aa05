#pragma once

// One send of a request upstream: the connection, the request's head and body on it, and the head
// of its answer. Owned by its Attempts, on the exchange's loop; whoever makes it stops it before it
// ends, since it may be sending beside its owner.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/admission.h"
#include "proxy/attempt/request_body.h"
#include "proxy/cooldown_pass.h"
#include "proxy/http/connection.h"
#include "proxy/http/upstream.h"
#include "proxy/throttle_pass.h"

namespace weir {

// One request as all of its attempts see it. Views and pointers outlive them.
struct Call {
  http::Connection& client;
  Admission& admission;
  CooldownPass& cooldown;
  ThrottlePass& throttle;
  RequestBody& body;  // behind what is in `wire`
  http::Upstream* upstream = nullptr;
  std::string_view wire{};            // the request's head, and of its body what was there with it
  std::size_t head_size = 0;          // of `wire`
  std::string_view upgrade{};         // the protocol that the client asks to switch to
  std::vector<bool>* used = nullptr;  // servers to pass over if there are others; nullptr: none
  enum class Interim { pass_on, drop };
  Interim interim = Interim::pass_on;
};

class Attempt {
 public:
  enum class Answer { head_read, none, timed_out, malformed };

  // `answer` outlives this; so does the call.
  Attempt(const Call& call, http::Head& answer);
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // A kept connection, if there is one.
  void take_kept_connection();
  // A fresh one, unless every server refuses or abort() is called.
  http::Task<void> connect();
  bool connected() const { return outbound_ && !aborted_; }
  // It was not needed.
  void give_connection_back();
  // Whether the throttle lets it go. Asked again, it goes by what it was told, until that is
  // learned.
  bool allowed() { return ticket_ || call_.throttle.allows(ticket_); }
  // It was let go by a throttle, which is to learn what becomes of it.
  bool has_ticket() const { return bool{ticket_}; }
  // What became of it, for the throttle; the first time counts.
  void learned(Load load);
  // Whether its unit is still good; to be asked just before it is sent.
  bool may_send();
  // Sends the request, as far as its body is there; the rest goes on beside.
  http::Task<http::Stream::Status> send_request();
  http::Task<Answer> read_head();

  // How many attempts were sent before this one.
  void follows(int previous) { previous_ = previous; }
  int previous() const { return previous_; }
  // Takes a unit of its own, without waiting, to be sent beside those `previous` ones.
  http::Task<bool> take_unit(int previous);

  // The connection may have been closed by the server while the request was on its way, and another
  // is as good: the server cannot have begun to serve it, or serving it twice is serving it once.
  bool may_replace_connection() const;
  // A byte of the request has gone out.
  bool begun() const { return outbound_ && outbound_.stream().sent() > sent_before_; }
  bool sends_body() const { return sending_ == Sending::under_way; }
  // Nothing of it is still to come, nor of the request: the upstream is done with it.
  bool answer_is_whole() const;
  bool sent_whole() const { return sending_ == Sending::nothing || sending_ == Sending::finished; }
  // Sends no more of the body until resume(): another attempt may want it.
  void hold();
  void resume();
  const RequestBody::Place& place() const { return place_; }

  // Ends whatever it waits for; on the loop, from anywhere.
  void abort();
  // Ends the sending that runs beside; before this is destroyed.
  http::Task<void> stop();

  http::Outbound& outbound() { return outbound_; }
  http::Head& answer() { return answer_; }
  const http::Head& answer() const { return answer_; }

 private:
  enum class Sending { nothing, under_way, finished, failed };

  std::chrono::milliseconds response_timeout() const {
    return call_.upstream->options().response_timeout;
  }
  SteadyTime now() const { return call_.client.loop().deadlines().now(); }
  http::Pieces request();
  http::Task<void> send_body();
  http::Task<void> pass_on_interim();

  const Call& call_;
  http::Head& answer_;
  http::Outbound outbound_;
  std::shared_ptr<http::Stream> connecting_;
  bool aborted_ = false;
  int previous_ = 0;
  bool beside_others_ = false;
  Throttle::Ticket ticket_;        // the throttle's, until its outcome is learned
  Permit unit_;                    // beside_others_: its own; otherwise the admission's is used
  std::uint64_t sent_before_ = 0;  // on this connection, by earlier requests
  bool answer_begun_ = false;      // a byte of any answer came
  bool answer_read_ = false;       // its head is whole

  // The rest of the request's body is sent beside reading the answer.
  Sending sending_ = Sending::nothing;
  http::Beside beside_;
  RequestBody::Place place_;
  bool held_ = false;
  http::Wakeup resumed_;
  SteadyTime answer_due_{};  // the request was sent: its answer's head is due then
  std::string scratch_;      // the field that retries add, and the head's end
};

}  // namespace weir
