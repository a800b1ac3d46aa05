#include "proxy/exchange.h"

#include "proxy/headers.h"
#include "proxy/http/tunnel.h"

namespace weir {
namespace {

using http::BodyDecoder;
using http::Denial;
using http::Framing;
using http::PieceFrame;
using http::Pieces;
using http::Stream;
using http::Task;
using std::chrono::milliseconds;

constexpr const char* kBrokenBody = "the body's framing is broken";

PieceFrame::Follows follows(const BodyDecoder& body) {
  return body.done() ? PieceFrame::Follows::nothing : PieceFrame::Follows::more;
}

}  // namespace

Exchange::Exchange(std::shared_ptr<const Setup> setup, http::Connection& client, Buffers& buffers)
    : setup_(std::move(setup)),
      client_(client),
      buffers_(buffers),
      routed_{&setup_->routes->rule(setup_->routes->size()), setup_->routes->size(), {}},
      admission_(setup_->coordinator, client),
      cooldown_(client, admission_),
      throttle_(client, admission_),
      attempts_(client, admission_, cooldown_, throttle_, buffers.answer) {}

Exchange::~Exchange() { client_.on_gone(nullptr); }

Task<void> Exchange::run() {
  if (const char* fault = route()) {
    client_.close_after_answer();
    co_return co_await reply(Ending::malformed, Denial::malformed, fault);
  }
  prepare_request();
  if (client_.body().failed()) {
    co_return co_await fail(Ending::malformed, Denial::malformed, kBrokenBody);
  }
  // From here on a client that leaves ends whatever its request is waiting for.
  client_.on_gone([this] { cancel(); });
  Attempts::Result result = Attempts::Result::unit_over;
  while (result == Attempts::Result::unit_over) {
    if (!cooldown_.free() || !admission_.admitted_at_once()) {
      throttle_.step_back();
      const bool entered = co_await enter();
      if (!entered) co_return;
    }
    if (!attempts_.allowed()) {
      const bool waited = co_await wait_for_throttle();
      if (!waited) co_return;
      continue;
    }
    result = co_await attempts_.run();
  }
  if (result != Attempts::Result::answered) {
    co_await tell(result);
  } else if (answer().status == 101) {
    co_await tunnel();
  } else {
    co_await relay_answer();
  }
  co_await attempts_.stop();
}

// Which rule, resource and upstream; a text if the request is none that we can place.
const char* Exchange::route() {
  const http::Head& request = client_.request();
  auto canonical =
      canonical_target(request.method, request.target, setup_->escaped_slashes, buffers_.target);
  if (const auto* bad = std::get_if<BadTarget>(&canonical)) return bad->why.data();
  target_ = std::get<Target>(canonical);
  const http::Field* host = request.find(http::Known::host);
  authority_ = !target_.authority.empty() ? target_.authority
               : host                     ? host->value
                                          : std::string_view{};

  std::string_view client_ip = client_.peer_text();
  if (setup_->trusted.contains(client_.peer())) {
    buffers_.client = setup_->trusted.client_address(client_.peer(), request.fields).text();
    client_ip = buffers_.client;
  }
  const RequestFacts facts{request.method, target_.counted, authority_, client_ip, request.fields};
  routed_ = setup_->routes->route(facts, buffers_.resource);
  const Limit& limit = routed_.rule->limit;
  const auto& throttle = setup_->throttles[per_rule().upstream_index];
  if (throttle.gate || (limit.queue == Queue::fair && !limit.unlimited)) {
    std::string scratch;
    buffers_.tenant = setup_->routes->tenant(facts, scratch);
  }
  if (const auto& cooldown = setup_->cooldowns[per_rule().upstream_index]; cooldown.gate) {
    std::string scratch;
    buffers_.project = tenant(cooldown.project, facts, scratch);
    cooldown_.begin({cooldown.gate.get(), buffers_.project, &per_rule().attempts.upstream_stats,
                     &setup_->coordinator.room(), &per_rule().attempts.random});
  }
  if (throttle.gate) {
    throttle_.begin({throttle.gate.get(), throttle.bell.get(), buffers_.tenant,
                     &per_rule().attempts.upstream_stats, &setup_->coordinator.room()});
  }
  admission_.begin({per_rule().policy, &limit, routed_.rule->name, routed_.resource,
                    buffers_.tenant, per_rule().stats, &setup_->stats, setup_->headers});
  return nullptr;
}

// Makes the request's head for the upstream, and adds what came of its body with it.
void Exchange::prepare_request() {
  const http::Head& request = client_.request();
  BodyDecoder& body = client_.body();
  if (body.done()) upgrade_ = http::upgrade_of(request);
  std::string server_name;
  if (authority_.empty()) {  // an HTTP/1.0 client may leave Host out
    server_name = upstream().options().servers.front().authority();
  }
  append_request_head(buffers_.wire,
                      {request, target_.forward, authority_.empty() ? server_name : authority_,
                       client_.peer_text(), setup_->trusted.contains(client_.peer()),
                       client_.framing(), upgrade_, per_rule().attempts.retries != nullptr});
  const std::size_t head_size = buffers_.wire.size();
  if (!body.done()) {
    const BodyDecoder::Piece piece = body.decode(client_.stream().data(), client_.stream().size());
    const PieceFrame frame(client_.framing().kind, piece.payload.size(), follows(body));
    buffers_.wire.append(frame.before()).append(piece.payload).append(frame.behind());
    client_.stream().consume(piece.wire);
  }
  if (body.done()) client_.stream().release_buffer();  // what comes next may be long in coming
  attempts_.begin({&upstream(), buffers_.wire, head_size, upgrade_, target_.counted},
                  per_rule().attempts);
}

// Behind a look at both, where one of them said no: past the cooldown and with a unit of the limit;
// false: the client has been told why not, or has gone. A request that waits for a unit keeps
// nobody waiting for what it would find out, so that it has to ask anew behind the line; and no
// unit is kept while it cools down.
Task<bool> Exchange::enter() {
  for (;;) {
    if (cooldown_.held()) {
      const bool cool = co_await cool_down();
      if (!cool) co_return false;
      if (admission_.admitted_at_once()) co_return true;
    }
    cooldown_.step_back();
    const bool admitted = co_await wait_in_line();
    if (!admitted) co_return false;
    if (cooldown_.free()) co_return true;
    admission_.give_back();
  }
}

// True: the cooldown is over. False: as below.
Task<bool> Exchange::cool_down() {
  const CooldownPass::Entered entered = co_await cooldown_.wait();
  if (entered == CooldownPass::Entered::passed) co_return true;
  if (entered == CooldownPass::Entered::interrupted) {
    ending_ = Ending::client_gone;
    co_return false;
  }
  admission_.look();
  co_await refuse(cooldown_.ending(), cooldown_.denial());
  co_return false;
}

// True: a unit of the limit is there. False: the client has been told that there is none, or has
// gone.
Task<bool> Exchange::wait_in_line() {
  const Admission::Entered entered = co_await admission_.wait();
  if (entered == Admission::Entered::admitted) co_return true;
  if (entered == Admission::Entered::client_gone) {
    ending_ = Ending::client_gone;
    co_return false;
  }
  co_await refuse(admission_.ending(), admission_.denial());
  co_return false;
}

// The throttle said no. True: it has something to say for the request by now, and all the rest is
// asked anew, since nothing was kept meanwhile. False: as above.
Task<bool> Exchange::wait_for_throttle() {
  admission_.give_back();
  cooldown_.step_back();
  const ThrottlePass::Entered entered = co_await throttle_.wait();
  if (entered == ThrottlePass::Entered::passed) co_return true;
  if (entered == ThrottlePass::Entered::interrupted) {
    ending_ = Ending::client_gone;
    co_return false;
  }
  admission_.look();
  co_await refuse(throttle_.ending(), throttle_.denial());
  co_return false;
}

// Not now: with what is left of the limit.
Task<void> Exchange::refuse(Ending ending, http::LocalReply denial) {
  denial.resource = routed_.resource;
  denial.fields = admission_.fields(buffers_.limit_fields).text;
  append_previous_attempts(denial.fields, attempts_.previous());
  ending_ = ending;
  status_ = http::status_of(denial.denial);
  co_await client_.reply(std::move(denial));
}

Task<void> Exchange::relay_answer() {
  const http::Head& request = client_.request();
  const Framing framing = http::response_framing(answer(), request.method);
  if (framing.fault) {
    co_return co_await fail(Ending::upstream_failed, Denial::upstream_failed,
                            std::string{"the answer has "} + framing.fault);
  }
  // A body whose end the upstream shows by closing, or chunk by chunk, is sent in chunks; an
  // HTTP/1.0 client knows only the close.
  Framing sent_as = framing;
  if (framing.kind == Framing::Kind::chunked || framing.kind == Framing::Kind::until_close) {
    sent_as.kind = request.minor_version == 1 ? Framing::Kind::chunked : Framing::Kind::until_close;
  }
  if (sent_as.kind == Framing::Kind::until_close) client_.close_after_answer();
  client_.answer_early();
  const bool body_left_out = request.method == "HEAD" || answer().status == 304;
  status_ = answer().status;
  buffers_.out.clear();
  append_answer_head(buffers_.out,
                     {answer(), sent_as, body_left_out ? http::content_length(answer()) : -1,
                      request.minor_version, client_.keep_alive(), client_.loop().http_date(),
                      admission_.fields(buffers_.limit_fields), attempts_.previous()});
  const bool whole = co_await relay_body(BodyDecoder{framing}, sent_as.kind);
  if (!whole && !buffers_.out.empty()) {  // nothing of it has gone out
    co_return co_await fail(Ending::upstream_failed, Denial::upstream_failed,
                            "the answer's body is broken");
  }
  if (!whole) {
    outbound().stream().abort();
    client_.cut(sent_as.kind == Framing::Kind::until_close ? http::Connection::Cut::reset
                                                           : http::Connection::Cut::close);
    co_return;
  }
  if (attempts_.current().sent_whole() && framing.kind != Framing::Kind::until_close &&
      http::persists(answer()) && outbound().stream().quiet()) {
    outbound().keep();
  }
}

// Sends the head in buffers_.out and behind it the body as it comes. False: it was cut.
Task<bool> Exchange::relay_body(BodyDecoder body, Framing::Kind sent_as) {
  Stream& from = outbound().stream();
  Stream& to = client_.stream();
  for (;;) {
    const BodyDecoder::Piece piece = body.decode(from.data(), from.size());
    if (body.failed()) {
      ending_ = Ending::upstream_failed;
      co_return false;
    }
    const PieceFrame frame(sent_as, piece.payload.size(), follows(body));
    Pieces pieces;
    pieces.add(buffers_.out);
    pieces.add(frame.before());
    pieces.add(piece.payload);
    pieces.add(frame.behind());
    const Stream::Status written = co_await to.write(pieces, client_.timeouts().body_idle);
    from.consume(piece.wire);
    buffers_.out.clear();
    if (written != Stream::Status::ok) {
      ending_ = Ending::client_gone;
      co_return false;
    }
    if (body.done()) co_return true;
    const Stream::Status status = co_await from.more(upstream().options().response_timeout);
    if (status == Stream::Status::ok) continue;
    if (status == Stream::Status::closed) body.end_of_input();
    if (body.done()) continue;  // the close was its end
    ending_ = client_.gone()                        ? Ending::client_gone
              : status == Stream::Status::timed_out ? Ending::upstream_timeout
                                                    : Ending::upstream_failed;
    co_return false;
  }
}

Task<void> Exchange::tunnel() {
  client_.on_gone(nullptr);  // from here on either side may close first
  client_.close_after_answer();
  status_ = answer().status;
  buffers_.out.clear();
  append_switch_head(buffers_.out, answer(), http::upgrade_of(answer()),
                     admission_.fields(buffers_.limit_fields));
  Pieces pieces;
  pieces.add(buffers_.out);
  if (co_await client_.stream().write(pieces, client_.timeouts().body_idle) != Stream::Status::ok) {
    ending_ = Ending::client_gone;
    co_return;
  }
  http::Tunnel tunnel(client_.stream(), outbound().stream(), upstream().options().response_timeout);
  co_await tunnel.run();
  client_.cut(http::Connection::Cut::close);
}

// There is no answer to pass on: what the client is told instead.
Task<void> Exchange::tell(Attempts::Result result) {
  switch (result) {
    case Attempts::Result::unreachable:
      return fail(
          Ending::upstream_unreachable, Denial::upstream_unreachable,
          "every server of upstream " + upstream().options().name + " refused the connection");
    case Attempts::Result::no_socket:
      return refuse_without_socket();
    case Attempts::Result::timed_out:
      return fail(Ending::upstream_timeout, Denial::upstream_timeout, "no answer came in time");
    case Attempts::Result::deadline:
      return fail(Ending::deadline, Denial::deadline,
                  "the time for all attempts together was over");
    case Attempts::Result::malformed_answer:
      return fail(Ending::upstream_failed, Denial::upstream_failed, "the answer was not HTTP");
    case Attempts::Result::body_malformed:
      return fail(Ending::malformed, Denial::malformed, kBrokenBody);
    case Attempts::Result::body_too_slow:
      return fail(Ending::malformed, Denial::too_slow, "the body stopped coming");
    default:  // a client that has gone is told nothing
      return fail(Ending::upstream_failed, Denial::upstream_failed,
                  "the connection ended before an answer");
  }
}

// Our own trouble, which says nothing of the upstream: as where all connections are in use.
Task<void> Exchange::refuse_without_socket() {
  co_await attempts_.stop();
  http::LocalReply denial{Denial::queue_full,
                          "this replica has no file, port or address left to reach upstream " +
                              upstream().options().name + " with"};
  co_await refuse(Ending::queue_full, std::move(denial));
}

Task<void> Exchange::reply(Ending ending, Denial denial, std::string detail) {
  ending_ = ending;
  status_ = http::status_of(denial);
  http::LocalReply local{denial, std::move(detail), std::string{routed_.resource}};
  append_previous_attempts(local.fields, attempts_.previous());
  co_await client_.reply(std::move(local));
}

// As reply(), where an upstream call has to be ended first.
Task<void> Exchange::fail(Ending ending, Denial denial, std::string detail) {
  co_await attempts_.stop();
  outbound().release();
  if (client_.gone()) {
    ending_ = Ending::client_gone;
    co_return;
  }
  if (ending == Ending::malformed) client_.close_after_answer();
  co_await reply(ending, denial, std::move(detail));
}

// The client has gone: whatever the exchange waits for ends now.
void Exchange::cancel() {
  admission_.cancel();
  throttle_.interrupt();
  attempts_.cancel();
}

}  // namespace weir
