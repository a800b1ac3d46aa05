#include "proxy/http/connection.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "proxy/headers.h"
#include "proxy/http/refusal.h"

namespace weir::http {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

// Text of an answer of our own that an idle connection keeps the memory of, at most.
constexpr std::size_t kMostIdle = 2 * 1024;
// What is read and thrown away behind an early answer to keep the connection, at most.
constexpr std::size_t kMaxDrain = 64 * 1024;
// A client that gets its answer early may take this long to notice and stop sending.
constexpr milliseconds kLinger{2'000};
constexpr std::size_t kMaxLinger = 32 * 1024 * 1024;

Address peer_address(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &length);
  if (storage.ss_family == AF_INET) {
    Address::V4 bytes;
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in&>(storage).sin_addr,
                bytes.size());
    return Address{bytes};
  }
  Address::V6 bytes;
  std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr,
              bytes.size());
  return Address{bytes};
}

}  // namespace

Connection::Connection(Loop& loop, int socket, const ServerOptions& options)
    : options_(options),
      stream_(loop, socket),
      peer_(peer_address(socket)),
      peer_text_(peer_.text()),
      reader_(HeadReader::Kind::request, options_.limits) {
  stream_.on_event([this] {
    if (stream_.peer_left() && on_gone_) on_gone_();
  });
}

Task<bool> Connection::read_request() {
  idle_ = true;
  expects_continue_ = false;
  keep_alive_ = true;
  framing_ = {};
  body_ = {};
  request_.method = request_.target = {};  // it may be refused before they are known
  SteadyTime header_deadline{};
  for (;;) {
    const HeadReader::Result result = reader_.read(stream_.received(), request_);
    if (stream_.size() > 0) idle_ = false;
    if (result.state != HeadReader::State::more) {
      stream_.consume(result.consumed);
      std::optional<LocalReply> refusal = judge(result);
      if (!refusal) co_return true;
      co_return co_await refuse(*std::move(refusal));
    }
    Stream::Status status = Stream::Status::timed_out;
    if (idle_) {
      stream_.release_buffer();
      request_.release_large();
      if (out_.capacity() > kMostIdle) std::string{}.swap(out_);
      status = co_await stream_.more(options_.timeouts.idle);
    } else {
      // One deadline for the whole head: each byte must not buy more time.
      const SteadyTime now = loop().deadlines().now();
      if (header_deadline == SteadyTime{}) header_deadline = now + options_.timeouts.header;
      const auto left = duration_cast<milliseconds>(header_deadline - now);
      const std::size_t room = std::max(Stream::kMaxBuffer, options_.limits.header_bytes + 2);
      if (left.count() > 0) status = co_await stream_.more(left, room);
    }
    if (status == Stream::Status::ok) continue;
    if (status != Stream::Status::timed_out || idle_) co_return false;
    LocalReply too_slow{Denial::too_slow, "the head was not complete in time"};
    co_return co_await refuse(std::move(too_slow));
  }
}

// Why the request that was read is not served; nothing: it is. Also decides about the body and the
// connection.
std::optional<LocalReply> Connection::judge(const HeadReader::Result& result) {
  if (auto refusal = refusal_of(result, options_.limits)) return refusal;
  framing_ = request_framing(request_);
  if (const char* fault = fault_of(request_, framing_)) {
    return LocalReply{Denial::malformed, fault};
  }
  body_ = BodyDecoder{framing_};
  keep_alive_ = persists(request_);
  if (auto refusal = refusal_of(request_)) return refusal;
  expects_continue_ = request_.find(Known::expect) && request_.minor_version == 1 && !body_.done();
  return std::nullopt;
}

Task<bool> Connection::refuse(LocalReply refusal) {
  keep_alive_ = false;
  refused_ = refusal.denial;
  co_await reply(std::move(refusal));
  co_return false;
}

Task<void> Connection::send_continue() {
  if (!expects_continue_) co_return;
  expects_continue_ = false;
  if (stream_.size() > 0) co_return;  // it did not wait to be told
  Pieces pieces;
  pieces.add("HTTP/1.1 100 Continue\r\n\r\n");
  // Half of it would make nonsense of whatever follows.
  if (co_await stream_.write(pieces, options_.timeouts.body_idle) != Stream::Status::ok) abort();
}

Task<void> Connection::reply(LocalReply reply) {
  answer_early();
  out_.clear();
  append_local_reply(out_, reply, request_.method, loop().http_date(),
                     keep_alive_ ? After::keep_alive : After::close);
  Pieces pieces;
  pieces.add(out_);
  if (co_await stream_.write(pieces, options_.timeouts.body_idle) != Stream::Status::ok) {
    keep_alive_ = false;
  }
}

Task<void> Connection::reply(int status, std::string_view content_type, std::string_view body) {
  answer_early();
  out_.clear();
  append_answer(out_, status, content_type, body, request_.method, loop().http_date(),
                keep_alive_ ? After::keep_alive : After::close);
  Pieces pieces;
  pieces.add(out_);
  if (co_await stream_.write(pieces, options_.timeouts.body_idle) != Stream::Status::ok) {
    keep_alive_ = false;
  }
}

void Connection::answer_early() {
  // A client still asking whether to send its body may do so or not: nobody could tell its first
  // bytes from the next request.
  if (body_.failed() || expects_continue_ || body_.remaining() > kMaxDrain) keep_alive_ = false;
}

void Connection::cut(Cut how) {
  keep_alive_ = false;
  how == Cut::reset ? stream_.close_with_reset() : stream_.close();
}

Task<bool> Connection::finish() {
  if (gone() || !stream_.open()) co_return false;
  std::size_t drained = 0;
  while (keep_alive_ && !body_.done()) {
    const BodyDecoder::Piece piece = body_.decode(stream_.data(), stream_.size());
    stream_.consume(piece.wire);
    drained += piece.wire;
    if (body_.done()) break;
    if (body_.failed() || drained > kMaxDrain ||
        co_await stream_.more(options_.timeouts.body_idle) != Stream::Status::ok) {
      keep_alive_ = false;
    }
  }
  if (keep_alive_) co_return true;
  if (refused_ || !body_.done() || stream_.size() > 0 || !stream_.nothing_unread()) {
    co_await linger();
  }
  co_return false;
}

// Closes without a reset that could overtake the answer on its way: says that no more will come,
// then reads on for a while.
Task<void> Connection::linger() {
  stream_.shutdown_send();
  std::size_t drained = 0;
  const SteadyTime until = loop().deadlines().now() + kLinger;
  for (;;) {
    drained += stream_.size();
    stream_.consume(stream_.size());
    const SteadyTime now = loop().deadlines().now();
    if (drained > kMaxLinger || now >= until) co_return;
    if (co_await stream_.more(duration_cast<milliseconds>(until - now)) != Stream::Status::ok) {
      co_return;
    }
  }
}

void Connection::abort() {
  stream_.abort();
  if (on_gone_) on_gone_();
}

}  // namespace weir::http
