#include "proxy/attempt/request_body.h"

namespace weir {

using http::BodyDecoder;
using http::PieceFrame;
using http::Pieces;
using http::Stream;
using http::Task;

bool RequestBody::whole(const Place& place) const {
  return client_.body().done() && wire_ == 0 && (!kept() || place.sent == replay_->size());
}

bool RequestBody::over(const Place& place) const {
  return ended_ || fault_ != Fault::none || whole(place);
}

Pieces RequestBody::next(Place& place) {
  if (kept() && place.sent < replay_->size()) return kept_from(place);
  Stream& from = client_.stream();
  BodyDecoder& body = client_.body();
  Pieces pieces;
  if (reader_ || body.done()) return pieces;
  const BodyDecoder::Piece piece = body.decode(from.data(), from.size());
  if (body.failed()) fault_ = Fault::malformed;
  if (body.failed() || (piece.payload.empty() && !body.done())) {
    from.consume(piece.wire);
    return pieces;
  }
  const auto follows = body.done() ? PieceFrame::Follows::nothing : PieceFrame::Follows::more;
  frame_.emplace(client_.framing().kind, piece.payload.size(), follows);
  if (kept() && keep(*frame_, piece.payload)) {
    from.consume(piece.wire);
    return kept_from(place);
  }
  wire_ = piece.wire;
  pieces.add(frame_->before());
  pieces.add(piece.payload);
  pieces.add(frame_->behind());
  if (replay_ && on_overflow_) std::exchange(on_overflow_, nullptr)(place);
  return pieces;
}

void RequestBody::taken(Place& place) {
  place.sent = place.sending;
  client_.stream().consume(std::exchange(wire_, 0));
}

bool RequestBody::keep(const PieceFrame& frame, std::string_view payload) {
  return replay_->append(frame.before()) && replay_->append(payload) &&
         replay_->append(frame.behind());
}

Pieces RequestBody::kept_from(Place& place) const {
  constexpr int kRuns = 4;
  Pieces pieces;
  place.sending = place.sent;
  for (int run = 0; run < kRuns; ++run) {
    const std::string_view bytes = replay_->behind(place.sending);
    pieces.add(bytes);
    place.sending += bytes.size();
  }
  return pieces;
}

Task<void> RequestBody::wait_for_more(Place& place) {
  if (over(place)) co_return;
  if (reader_) {
    waiting_.push_back(&place);
    co_await place.more.wait();
    std::erase(waiting_, &place);
    co_return;
  }
  reader_ = &place;
  Stream& from = client_.stream();
  const Stream::Status status = co_await from.more(client_.timeouts().body_idle);
  reader_ = nullptr;
  for (Place* const other : waiting_) other->more.wake();
  if (status == Stream::Status::timed_out) fault_ = Fault::too_slow;
  if (status == Stream::Status::closed || status == Stream::Status::reset || !from.open()) {
    ended_ = true;
  }
}

void RequestBody::interrupt(Place& place) {
  reader_ == &place ? client_.stream().interrupt() : place.more.wake();
}

}  // namespace weir
