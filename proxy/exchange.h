#pragma once

// One client request with its answer, from the head that was read to the last byte that was sent.
// Read run() first: it is the list of what happens to a request. Lives on its connection's loop for
// as long as run() does.

#include <memory>
#include <string>
#include <string_view>

#include "proxy/admission.h"
#include "proxy/proxy.h"

namespace weir {

class Exchange {
 public:
  Exchange(std::shared_ptr<const Setup> setup, http::Connection& client, Buffers& buffers);
  ~Exchange();

  http::Task<void> run();

  // How it went, once run() is over.
  Ending ending() const { return admission_.shadow_denied() ? Ending::shadow_denied : ending_; }
  int status() const { return status_; }
  const Rule& rule() const { return *routed_.rule; }
  RuleStats& stats() const { return *per_rule().stats; }

 private:
  enum class Answer { head_read, none, timed_out, malformed };

  const Setup::PerRule& per_rule() const { return setup_->per_rule[routed_.rule_index]; }
  http::Upstream& upstream() const { return *per_rule().upstream; }
  std::chrono::milliseconds response_timeout() const {
    return upstream().options().response_timeout;
  }

  // What happens to a request, in this order.
  const char* route();
  void prepare_request();
  http::Task<bool> wait_in_line();
  http::Task<bool> attempt();
  http::Task<void> relay_answer();
  http::Task<void> tunnel();

  // Parts of an attempt.
  void take_kept_connection();
  bool request_begun() const { return outbound_.stream().sent() > sent_before_; }
  http::Task<http::Stream::Status> send_request();
  http::Task<void> send_body();
  http::Task<void> stop_sending();
  http::Task<Answer> read_answer_head();
  http::Task<void> pass_on_interim();
  bool may_replace_connection() const;

  http::Task<bool> relay_body(http::BodyDecoder body, http::Framing::Kind sent_as);

  http::Task<void> reply(Ending ending, http::Denial denial, std::string detail);
  http::Task<void> fail(Ending ending, http::Denial denial, std::string detail);
  void cancel();

  const std::shared_ptr<const Setup> setup_;
  http::Connection& client_;
  Buffers& buffers_;

  // Set by route().
  Target target_;
  std::string_view authority_;
  Routed routed_;

  Admission admission_;
  std::string_view upgrade_;  // the protocol that the client asks to switch to
  http::Outbound outbound_;
  std::shared_ptr<http::Stream> connecting_;
  std::uint64_t sent_before_ = 0;  // on this connection, by earlier requests
  bool answer_begun_ = false;      // a byte of any answer came from the upstream

  // The rest of the request's body is sent beside reading the answer.
  enum class Sending { nothing, under_way, finished, failed };
  Sending sending_ = Sending::nothing;
  http::Beside beside_;
  enum class BodyFault { none, malformed, too_slow };
  BodyFault body_fault_ = BodyFault::none;  // why the body could not be read from the client
  SteadyTime answer_due_{};                 // the request was sent: its answer's head is due then

  Ending ending_ = Ending::ok;
  int status_ = 0;
};

}  // namespace weir
