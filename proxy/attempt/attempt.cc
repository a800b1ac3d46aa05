#include "proxy/attempt/attempt.h"

#include <utility>

#include "proxy/attempt/upstream_retries.h"
#include "proxy/headers.h"

namespace weir {
namespace {

using http::HeadReader;
using http::Pieces;
using http::Stream;
using http::Task;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr milliseconds kNoTimeout{0};
constexpr std::string_view kHeadEnd = "\r\n";
// What an upstream's head may take up. Servers are trusted with more than clients.
constexpr http::Limits kAnswerLimits{Stream::kMaxBuffer, 1000, 0, 0};

}  // namespace

Attempt::Attempt(const Call& call, http::Head& answer)
    : call_(call),
      answer_(answer),
      beside_(call.client.loop()),
      place_(call.client.loop()),
      resumed_(call.client.loop()) {}

void Attempt::take_kept_connection() {
  outbound_ = call_.upstream->take_idle(call_.used);
  // What was sent on a connection that the server closed meanwhile may be lost: where the request
  // cannot be sent twice, ask the kernel first.
  const bool once_only = !is_idempotent(call_.client.request().method) || !call_.body.whole(place_);
  if (outbound_ && once_only && !outbound_.stream().nothing_unread()) outbound_.release();
}

Task<void> Attempt::connect() {
  if (aborted_) co_return;
  outbound_ = co_await call_.upstream->connect(connecting_, call_.used);
  connecting_.reset();
}

void Attempt::give_connection_back() {
  outbound_.stream().quiet() ? outbound_.keep() : outbound_.release();
}

void Attempt::learned(Load load) {
  if (ticket_) ticket_.settle(load, call_.client.loop().clock().steady_now());
}

bool Attempt::may_send() {
  return beside_others_ ? call_.admission.may_send(unit_) : call_.admission.may_send();
}

Task<bool> Attempt::take_unit(int previous) {
  previous_ = previous;
  beside_others_ = true;
  return call_.admission.enter_beside(unit_);
}

bool Attempt::may_replace_connection() const {
  if (!outbound_.reused() || answer_begun_ || sending_ != Sending::nothing || aborted_)
    return false;
  return !begun() || is_idempotent(call_.client.request().method);
}

// The request's head, and what came of its body with it. Attempts after the first say so.
Pieces Attempt::request() {
  Pieces pieces;
  if (previous_ == 0) {
    pieces.add(call_.wire);
  } else {
    scratch_.clear();
    append_previous_attempts(scratch_, previous_);
    scratch_.append(kHeadEnd);
    pieces.add(call_.wire.substr(0, call_.head_size - kHeadEnd.size()));
    pieces.add(scratch_);
    pieces.add(call_.wire.substr(call_.head_size));
  }
  return pieces;
}

Task<Stream::Status> Attempt::send_request() {
  Pieces pieces = request();
  sent_before_ = outbound_.stream().sent();
  // Its unit is good now, and may not be later: where the connection takes nothing at once, because
  // the server has not read what was sent on it before, it is of no use.
  Stream::Status status = outbound_.stream().write_now(pieces);
  if (begun()) beside_others_ ? call_.admission.sent(unit_) : call_.admission.sent();
  if (status == Stream::Status::ok && !pieces.empty()) {
    status = co_await outbound_.stream().write(pieces, response_timeout());
  }
  answer_due_ = now() + response_timeout();
  if (status != Stream::Status::ok) co_return status;
  if (!call_.body.whole(place_)) {
    co_await call_.client.send_continue();
    sending_ = Sending::under_way;
    beside_.start(send_body());
  }
  co_return status;
}

// Runs beside the reading of the answer: an upstream may answer, even at length, before it has read
// everything.
Task<void> Attempt::send_body() {
  Stream& to = outbound_.stream();
  RequestBody& body = call_.body;
  for (;;) {
    while (held_) co_await resumed_.wait();
    if (to.aborted() || body.over(place_)) break;
    const Pieces pieces = body.next(place_);
    if (pieces.empty()) {
      co_await body.wait_for_more(place_);
      continue;
    }
    const Stream::Status status = co_await to.write(pieces, response_timeout());
    body.taken(place_);
    if (status != Stream::Status::ok) {
      sending_ = Sending::failed;
      // It does not read. If it has not answered all the same by now, it will not.
      if (status == Stream::Status::timed_out && !answer_read_)
        to.set_read_timeout(milliseconds{1});
      co_return;
    }
  }
  if (to.aborted() || !body.whole(place_)) {
    sending_ = Sending::failed;
    to.abort();
    co_return;
  }
  sending_ = Sending::finished;
  answer_due_ = now() + response_timeout();
  to.set_read_timeout(response_timeout());
}

void Attempt::hold() {
  if (sending_ != Sending::under_way) return;
  held_ = true;
  call_.body.interrupt(place_);
}

void Attempt::resume() {
  held_ = false;
  resumed_.wake();
}

void Attempt::abort() {
  aborted_ = true;
  if (connecting_) connecting_->abort();
  if (outbound_) outbound_.stream().abort();
  call_.body.interrupt(place_);
}

Task<void> Attempt::stop() {
  if (sending_ == Sending::under_way) {
    outbound_.stream().abort();
    resume();
    call_.body.interrupt(place_);
  }
  co_await beside_.join();
}

Task<Attempt::Answer> Attempt::read_head() {
  Stream& from = outbound_.stream();
  HeadReader reader(HeadReader::Kind::response, kAnswerLimits);
  for (;;) {
    const HeadReader::Result result = reader.read(from.received(), answer_);
    if (from.size() > 0) answer_begun_ = true;
    if (result.state == HeadReader::State::done) {
      from.consume(result.consumed);
      const bool switches = answer_.status == 101;
      if (switches && (call_.upgrade.empty() || http::upgrade_of(answer_).empty())) {
        co_return Answer::malformed;
      }
      if (switches || answer_.status >= 200) {
        answer_read_ = true;
        co_return Answer::head_read;
      }
      co_await pass_on_interim();
      continue;
    }
    if (result.state != HeadReader::State::more) co_return Answer::malformed;
    // While the body is under way its own deadlines hold; the answer's time begins behind it.
    milliseconds timeout = kNoTimeout;
    if (sending_ != Sending::under_way) {
      timeout = duration_cast<milliseconds>(answer_due_ - now());
      if (timeout.count() <= 0) co_return Answer::timed_out;
    }
    const Stream::Status status = co_await from.more(timeout);
    if (status == Stream::Status::timed_out) co_return Answer::timed_out;
    if (status == Stream::Status::full) co_return Answer::malformed;  // a head without end
    if (status != Stream::Status::ok) co_return Answer::none;
  }
}

bool Attempt::answer_is_whole() const {
  const http::Framing framing = http::response_framing(answer_, call_.client.request().method);
  http::BodyDecoder body(framing);
  std::string received{outbound_.stream().received()};  // decoding moves bytes
  body.decode(received.data(), received.size());
  return sent_whole() && !framing.fault && body.done();
}

Task<void> Attempt::pass_on_interim() {
  // We have told the client ourselves to go on.
  if (call_.interim == Call::Interim::drop) co_return;
  if (answer_.status == 100 || call_.client.request().minor_version == 0) co_return;
  std::string head;
  append_interim_head(head, answer_);
  Pieces pieces;
  pieces.add(head);
  // Half of it would make nonsense of whatever follows.
  const auto written =
      co_await call_.client.stream().write(pieces, call_.client.timeouts().body_idle);
  if (written != Stream::Status::ok) call_.client.abort();
}

}  // namespace weir
