#include "proxy/exchange.h"

#include "proxy/headers.h"
#include "proxy/http/tunnel.h"

namespace weir {
namespace {

using http::BodyDecoder;
using http::Denial;
using http::Framing;
using http::HeadReader;
using http::PieceFrame;
using http::Pieces;
using http::Stream;
using http::Task;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr milliseconds kNoTimeout{0};
constexpr const char* kBrokenBody = "the body's framing is broken";
// What an upstream's head may take up. Servers are trusted with more than clients.
constexpr http::Limits kAnswerLimits{Stream::kMaxBuffer, 1000, 0, 0};

PieceFrame::Follows follows(const BodyDecoder& body) {
  return body.done() ? PieceFrame::Follows::nothing : PieceFrame::Follows::more;
}

bool is_idempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS" || method == "TRACE";
}

}  // namespace

Exchange::Exchange(std::shared_ptr<const Setup> setup, http::Connection& client, Buffers& buffers)
    : setup_(std::move(setup)),
      client_(client),
      buffers_(buffers),
      routed_{&setup_->routes.rule(setup_->routes.size()), setup_->routes.size(), {}},
      admission_(setup_->coordinator, client),
      beside_(client.loop()) {}

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
  if (!admission_.admitted_at_once()) {
    if (!co_await wait_in_line()) co_return;
  }
  if (co_await attempt()) {
    if (buffers_.answer.status == 101) {
      co_await tunnel();
    } else {
      co_await relay_answer();
    }
  }
  co_await stop_sending();
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
  routed_ = setup_->routes.route(facts, buffers_.resource);
  const Limit& limit = routed_.rule->limit;
  if (limit.queue == Queue::fair && !limit.unlimited) {
    std::string scratch;
    buffers_.tenant = setup_->routes.tenant(facts, scratch);
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
    const ServerAddress& server = upstream().options().servers.front();
    server_name = server.host + ":" + std::to_string(server.port);
  }
  append_request_head(
      buffers_.wire,
      {request, target_.forward, authority_.empty() ? server_name : authority_, client_.peer_text(),
       setup_->trusted.contains(client_.peer()), client_.framing(), upgrade_});
  if (body.done()) return;
  const BodyDecoder::Piece piece = body.decode(client_.stream().data(), client_.stream().size());
  const PieceFrame frame(client_.framing().kind, piece.payload.size(), follows(body));
  buffers_.wire.append(frame.before()).append(piece.payload).append(frame.behind());
  client_.stream().consume(piece.wire);
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
  http::LocalReply denial = admission_.denial();
  denial.resource = routed_.resource;
  denial.fields = admission_.fields(buffers_.limit_fields).text;
  ending_ = admission_.ending();
  status_ = http::status_of(denial.denial);
  co_await client_.reply(std::move(denial));
  co_return false;
}

void Exchange::take_kept_connection() {
  outbound_ = upstream().take_idle();
  // What was sent on a connection that the server closed meanwhile may be lost: where the request
  // cannot be sent twice, ask the kernel first.
  const bool once_only = !is_idempotent(client_.request().method) || !client_.body().done();
  if (outbound_ && once_only && !outbound_.stream().nothing_unread()) {
    outbound_.release();
  }
}

// Sends the request and reads the answer's head. True: there is one. False: the client has been
// told, or has gone.
Task<bool> Exchange::attempt() {
  per_rule().upstream_stats->first_attempts.add();
  take_kept_connection();
  for (;;) {
    if (!outbound_) outbound_ = co_await upstream().connect(connecting_);
    connecting_.reset();
    if (client_.gone()) break;
    if (!outbound_) {
      co_await reply(
          Ending::upstream_unreachable, Denial::upstream_unreachable,
          "every server of upstream " + upstream().options().name + " refused the connection");
      co_return false;
    }
    if (!admission_.may_send()) {  // the unit's time ended while a connection was made
      outbound_.stream().quiet() ? outbound_.keep() : outbound_.release();
      if (!admission_.admitted_at_once()) {
        if (!co_await wait_in_line()) co_return false;
      }
      take_kept_connection();
      continue;
    }
    Answer answer = Answer::none;
    const Stream::Status sent = co_await send_request();
    if (sent == Stream::Status::timed_out) {
      answer = Answer::timed_out;
    } else {
      answer = co_await read_answer_head();
    }
    if (answer == Answer::head_read) co_return true;
    if (client_.gone() || body_fault_ != BodyFault::none) break;
    if (answer == Answer::none && may_replace_connection()) {
      bool has_unit = !request_begun();
      outbound_.release();
      if (!has_unit) has_unit = co_await admission_.enter_again();
      if (client_.gone()) break;
      if (has_unit) {
        per_rule().upstream_stats->transparent_attempts.add();
        continue;
      }
    }
    if (answer == Answer::timed_out) {
      co_await fail(Ending::upstream_timeout, Denial::upstream_timeout, "no answer came in time");
    } else {
      co_await fail(Ending::upstream_failed, Denial::upstream_failed,
                    answer == Answer::malformed ? "the answer was not HTTP"
                                                : "the connection ended before an answer");
    }
    co_return false;
  }
  if (body_fault_ == BodyFault::malformed) {
    co_await fail(Ending::malformed, Denial::malformed, kBrokenBody);
  } else if (body_fault_ == BodyFault::too_slow) {
    co_await fail(Ending::malformed, Denial::too_slow, "the body stopped coming");
  } else {
    ending_ = Ending::client_gone;
  }
  co_return false;
}

// A kept connection may have been closed by the server while the request was on its way. Another is
// as good if the server cannot have begun to serve it, or if serving it twice is serving it once.
bool Exchange::may_replace_connection() const {
  if (!outbound_.reused() || answer_begun_ || sending_ != Sending::nothing) return false;
  return !request_begun() || is_idempotent(client_.request().method);
}

Task<Stream::Status> Exchange::send_request() {
  Pieces pieces;
  pieces.add(buffers_.wire);
  sent_before_ = outbound_.stream().sent();
  const Stream::Status status = co_await outbound_.stream().write(pieces, response_timeout());
  if (request_begun()) admission_.sent();
  answer_due_ = client_.loop().deadlines().now() + response_timeout();
  if (status != Stream::Status::ok) co_return status;
  if (!client_.body().done()) {
    co_await client_.send_continue();
    sending_ = Sending::under_way;
    beside_.start(send_body());
  }
  co_return status;
}

// Runs beside the reading of the answer: an upstream may answer, even at length, before it has read
// everything.
Task<void> Exchange::send_body() {
  Stream& from = client_.stream();
  Stream& to = outbound_.stream();
  BodyDecoder& body = client_.body();
  while (!body.done()) {
    const BodyDecoder::Piece piece = body.decode(from.data(), from.size());
    if (body.failed()) body_fault_ = BodyFault::malformed;
    if (body_fault_ != BodyFault::none) break;
    if (piece.payload.empty() && !body.done()) {
      from.consume(piece.wire);
      const Stream::Status status = co_await from.more(client_.timeouts().body_idle);
      if (status == Stream::Status::ok) continue;
      if (status == Stream::Status::timed_out) body_fault_ = BodyFault::too_slow;
      break;
    }
    const PieceFrame frame(client_.framing().kind, piece.payload.size(), follows(body));
    Pieces pieces;
    pieces.add(frame.before());
    pieces.add(piece.payload);
    pieces.add(frame.behind());
    const Stream::Status status = co_await to.write(pieces, response_timeout());
    from.consume(piece.wire);
    if (status != Stream::Status::ok) {
      sending_ = Sending::failed;
      // It does not read. If it has not answered all the same by now, it will not.
      if (status == Stream::Status::timed_out && status_ == 0) to.set_read_timeout(milliseconds{1});
      co_return;
    }
  }
  if (!body.done()) {
    sending_ = Sending::failed;
    to.abort();
    co_return;
  }
  sending_ = Sending::finished;
  answer_due_ = client_.loop().deadlines().now() + response_timeout();
  to.set_read_timeout(response_timeout());
}

Task<void> Exchange::stop_sending() {
  if (sending_ == Sending::under_way) {
    outbound_.stream().abort();
    client_.stream().interrupt();
  }
  co_await beside_.join();
}

Task<Exchange::Answer> Exchange::read_answer_head() {
  Stream& from = outbound_.stream();
  HeadReader reader(HeadReader::Kind::response, kAnswerLimits);
  for (;;) {
    const HeadReader::Result result = reader.read(from.received(), buffers_.answer);
    if (from.size() > 0) answer_begun_ = true;
    if (result.state == HeadReader::State::done) {
      from.consume(result.consumed);
      if (buffers_.answer.status >= 200) co_return Answer::head_read;
      if (buffers_.answer.status == 101)
        co_return upgrade_.empty() ? Answer::malformed : Answer::head_read;
      co_await pass_on_interim();
      continue;
    }
    if (result.state != HeadReader::State::more) co_return Answer::malformed;
    // While the body is under way its own deadlines hold; the answer's time begins behind it.
    milliseconds timeout = kNoTimeout;
    if (sending_ != Sending::under_way) {
      timeout = duration_cast<milliseconds>(answer_due_ - client_.loop().deadlines().now());
      if (timeout.count() <= 0) co_return Answer::timed_out;
    }
    const Stream::Status status = co_await from.more(timeout);
    if (status == Stream::Status::timed_out) co_return Answer::timed_out;
    if (status != Stream::Status::ok) co_return Answer::none;
  }
}

Task<void> Exchange::pass_on_interim() {
  // We have told the client ourselves to go on.
  if (buffers_.answer.status == 100 || client_.request().minor_version == 0) co_return;
  buffers_.out.clear();
  append_interim_head(buffers_.out, buffers_.answer);
  Pieces pieces;
  pieces.add(buffers_.out);
  // Half of it would make nonsense of whatever follows.
  const auto written = co_await client_.stream().write(pieces, client_.timeouts().body_idle);
  if (written != Stream::Status::ok) client_.abort();
}

Task<void> Exchange::relay_answer() {
  const http::Head& request = client_.request();
  const Framing framing = http::response_framing(buffers_.answer, request.method);
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
  const bool body_left_out = request.method == "HEAD" || buffers_.answer.status == 304;
  status_ = buffers_.answer.status;
  buffers_.out.clear();
  append_answer_head(
      buffers_.out,
      {buffers_.answer, sent_as, body_left_out ? http::content_length(buffers_.answer) : -1,
       request.minor_version, client_.keep_alive(), client_.loop().http_date(),
       admission_.fields(buffers_.limit_fields)});
  const bool whole = co_await relay_body(BodyDecoder{framing}, sent_as.kind);
  if (!whole && !buffers_.out.empty()) {  // nothing of it has gone out
    co_return co_await fail(Ending::upstream_failed, Denial::upstream_failed,
                            "the answer's body is broken");
  }
  if (!whole) {
    outbound_.stream().abort();
    client_.cut(sent_as.kind == Framing::Kind::until_close ? http::Connection::Cut::reset
                                                           : http::Connection::Cut::close);
    co_return;
  }
  const bool all_sent = sending_ == Sending::nothing || sending_ == Sending::finished;
  if (all_sent && framing.kind != Framing::Kind::until_close && http::persists(buffers_.answer) &&
      outbound_.stream().quiet()) {
    outbound_.keep();
  }
}

// Sends the head in buffers_.out and behind it the body as it comes. False: it was cut.
Task<bool> Exchange::relay_body(BodyDecoder body, Framing::Kind sent_as) {
  Stream& from = outbound_.stream();
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
    const Stream::Status status = co_await from.more(response_timeout());
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
  status_ = buffers_.answer.status;
  buffers_.out.clear();
  append_switch_head(buffers_.out, buffers_.answer, http::upgrade_of(buffers_.answer),
                     admission_.fields(buffers_.limit_fields));
  Pieces pieces;
  pieces.add(buffers_.out);
  if (co_await client_.stream().write(pieces, client_.timeouts().body_idle) != Stream::Status::ok) {
    ending_ = Ending::client_gone;
    co_return;
  }
  http::Tunnel tunnel(client_.stream(), outbound_.stream(), response_timeout());
  co_await tunnel.run();
  client_.cut(http::Connection::Cut::close);
}

Task<void> Exchange::reply(Ending ending, Denial denial, std::string detail) {
  ending_ = ending;
  status_ = http::status_of(denial);
  http::LocalReply local{denial, std::move(detail), std::string{routed_.resource}};
  co_await client_.reply(std::move(local));
}

// As reply(), where an upstream call has to be ended first.
Task<void> Exchange::fail(Ending ending, Denial denial, std::string detail) {
  co_await stop_sending();
  outbound_.release();
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
  if (connecting_) connecting_->abort();
  if (outbound_) outbound_.stream().abort();
}

}  // namespace weir
