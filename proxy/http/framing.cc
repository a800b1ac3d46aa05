#include "proxy/http/framing.h"

#include <charconv>
#include <cstring>
#include <limits>

namespace weir::http {
namespace {

constexpr std::size_t kMaxChunkLine = 1024;
constexpr std::size_t kMaxTrailers = 16 * 1024;
constexpr std::uint64_t kMaxLength = std::numeric_limits<std::int64_t>::max();

// Digits only: no sign, no list, no space, nothing that another parser might read differently.
std::int64_t parse_length(std::string_view text) {
  if (text.empty() || text.size() > 19) return -1;
  std::uint64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value <= kMaxLength ? static_cast<std::int64_t>(value) : -1;
}

// The framing that the fields alone ask for.
Framing field_framing(const Head& head) {
  const Field* encoding = nullptr;
  const Field* length = nullptr;
  for (const Field& field : head.fields) {
    if (field.known == Known::transfer_encoding) {
      if (encoding) return {.fault = "more than one Transfer-Encoding"};
      encoding = &field;
    } else if (field.known == Known::content_length) {
      if (length) return {.fault = "more than one Content-Length"};
      length = &field;
    }
  }
  if (encoding) {
    if (length) return {.fault = "Content-Length and Transfer-Encoding"};
    if (head.minor_version == 0) return {.fault = "Transfer-Encoding in HTTP/1.0"};
    if (!equal_ignoring_case(encoding->value, "chunked")) {
      return {.fault = "a Transfer-Encoding other than chunked"};
    }
    return {Framing::Kind::chunked};
  }
  if (length) {
    const std::int64_t value = parse_length(length->value);
    if (value < 0) return {.fault = "a Content-Length that is not a number"};
    return {Framing::Kind::length, static_cast<std::uint64_t>(value)};
  }
  return {};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = lower_case(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// What a field's name may consist of.
bool is_token(char c) {
  const char lower = lower_case(c);
  return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

}  // namespace

Framing request_framing(const Head& head) { return field_framing(head); }

Framing response_framing(const Head& head, std::string_view request_method) {
  const Framing framing = field_framing(head);
  if (framing.fault) return framing;
  if (head.status < 200 || head.status == 204 || head.status == 304 || request_method == "HEAD") {
    return {};
  }
  if (framing.kind == Framing::Kind::none) return {Framing::Kind::until_close};
  return framing;
}

std::int64_t content_length(const Head& head) {
  const Field* field = head.find(Known::content_length);
  return field ? parse_length(field->value) : -1;
}

PieceFrame::PieceFrame(Framing::Kind kind, std::size_t payload_size, Follows follows) {
  if (kind != Framing::Kind::chunked) return;
  const bool last = follows == Follows::nothing;
  if (payload_size == 0) {  // a chunk of none would end the body
    behind_ = last ? "0\r\n\r\n" : "";
    return;
  }
  char* end = std::to_chars(line_.data(), line_.data() + 16, payload_size, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  line_size_ = static_cast<std::size_t>(end - line_.data());
  behind_ = last ? "\r\n0\r\n\r\n" : "\r\n";
}

BodyDecoder::BodyDecoder(const Framing& framing) {
  switch (framing.kind) {
    case Framing::Kind::none:
      state_ = State::done;
      break;
    case Framing::Kind::until_close:
      state_ = State::until_close;
      break;
    case Framing::Kind::chunked:
      state_ = State::chunk_size;
      break;
    case Framing::Kind::length:
      left_ = framing.length;
      state_ = left_ > 0 ? State::length : State::done;
      break;
  }
}

BodyDecoder::Piece BodyDecoder::decode(char* data, std::size_t size) {
  if (state_ == State::until_close) return {{data, size}, size};
  if (state_ == State::length) {
    const std::size_t n = left_ < size ? static_cast<std::size_t>(left_) : size;
    left_ -= n;
    if (left_ == 0) state_ = State::done;
    return {{data, n}, n};
  }
  // Chunked: `out` is where the next payload byte belongs.
  char* begin = nullptr;
  char* out = nullptr;
  std::size_t i = 0;
  while (i < size && state_ != State::done && state_ != State::failed) {
    if (state_ != State::chunk_data) {
      line_byte(data[i++]);
      continue;
    }
    const std::size_t n = left_ < size - i ? static_cast<std::size_t>(left_) : size - i;
    if (!begin) begin = out = data + i;
    if (out != data + i) std::memmove(out, data + i, n);
    out += n;
    i += n;
    left_ -= n;
    if (left_ == 0) state_ = State::chunk_data_cr;
  }
  return {
      begin ? std::string_view{begin, static_cast<std::size_t>(out - begin)} : std::string_view{},
      i};
}

void BodyDecoder::chunk_size_byte(char c) {
  if (const int digit = hex_digit(c); digit >= 0) {
    if (left_ > (kMaxLength >> 4)) {
      state_ = State::failed;
    } else {
      left_ = left_ << 4 | static_cast<std::uint64_t>(digit);
    }
    return;
  }
  if (line_bytes_ == 1) {  // no digit came before
    state_ = State::failed;
  } else if (c == ';') {
    state_ = State::chunk_extension;
  } else {
    state_ = c == '\r' ? State::chunk_line_end : State::failed;
  }
}

// One byte of what stands between the payloads.
void BodyDecoder::line_byte(char c) {
  const auto expect = [&](char wanted, State next) { state_ = c == wanted ? next : State::failed; };
  ++line_bytes_;
  switch (state_) {
    case State::chunk_size:
      chunk_size_byte(c);
      break;
    case State::chunk_extension:
      if (c == '\r') {
        state_ = State::chunk_line_end;
      } else if (is_control(c)) {
        state_ = State::failed;
      }
      break;
    case State::chunk_line_end:
      expect('\n', left_ > 0 ? State::chunk_data : State::trailer_start);
      line_bytes_ = 0;
      return;
    case State::chunk_data_cr:
      expect('\r', State::chunk_data_lf);
      line_bytes_ = 0;
      return;
    case State::chunk_data_lf:
      expect('\n', State::chunk_size);
      line_bytes_ = 0;
      return;
    case State::trailer_start:
      state_ = c == '\r' ? State::trailers_end : is_token(c) ? State::trailer_name : State::failed;
      return;
    case State::trailer_name:
      if (c == ':') {
        state_ = State::trailer_line;
      } else if (!is_token(c) || line_bytes_ > kMaxTrailers) {
        state_ = State::failed;
      }
      return;
    case State::trailer_line:
      if (c == '\r') {
        state_ = State::trailer_line_end;
      } else if (is_control(c)) {
        state_ = State::failed;
      }
      if (line_bytes_ > kMaxTrailers) state_ = State::failed;
      return;
    case State::trailer_line_end:
      expect('\n', State::trailer_start);
      return;
    case State::trailers_end:
      expect('\n', State::done);
      return;
    case State::done:
    case State::failed:
    case State::length:
    case State::until_close:
    case State::chunk_data:
      return;  // decode() does not come here in these
  }
  const bool in_chunk_line = state_ == State::chunk_size || state_ == State::chunk_extension;
  if (in_chunk_line && line_bytes_ > kMaxChunkLine) state_ = State::failed;
}

void BodyDecoder::end_of_input() {
  if (state_ != State::done) state_ = state_ == State::until_close ? State::done : State::failed;
}

std::uint64_t BodyDecoder::remaining() const {
  if (state_ == State::done) return 0;
  return state_ == State::length ? left_ : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace weir::http
