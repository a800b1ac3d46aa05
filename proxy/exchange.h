#pragma once

// One client request with its answer, from the head that was read to the last byte that was sent.
// Read run() first: it is the list of what happens to a request. Lives on its connection's loop for
// as long as run() does.

#include <memory>
#include <string>
#include <string_view>

#include "proxy/admission.h"
#include "proxy/attempt/attempts.h"
#include "proxy/cooldown_pass.h"
#include "proxy/proxy.h"
#include "proxy/throttle_pass.h"

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
  const Setup::PerRule& per_rule() const { return setup_->per_rule[routed_.rule_index]; }
  http::Upstream& upstream() const { return *per_rule().upstream; }

  // What happens to a request, in this order.
  const char* route();
  void prepare_request();
  http::Task<bool> enter();
  http::Task<bool> cool_down();
  http::Task<bool> wait_in_line();
  http::Task<bool> wait_for_throttle();
  http::Task<void> relay_answer();
  http::Task<void> tunnel();
  http::Task<void> tell(Attempts::Result result);

  const http::Head& answer() { return attempts_.current().answer(); }
  http::Outbound& outbound() { return attempts_.current().outbound(); }
  http::Task<bool> relay_body(http::BodyDecoder body, http::Framing::Kind sent_as);

  http::Task<void> refuse_without_socket();
  http::Task<void> refuse(Ending ending, http::LocalReply denial);
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
  CooldownPass cooldown_;
  ThrottlePass throttle_;
  std::string_view upgrade_;  // the protocol that the client asks to switch to
  Attempts attempts_;

  Ending ending_ = Ending::ok;
  int status_ = 0;
};

}  // namespace weir
