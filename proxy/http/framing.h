#pragma once

// Where a message's body begins and ends. Decided here from the fields, strictly, and never by
// passing a framing field on: each side of the proxy gets one that we made. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxy/http/head.h"

namespace weir::http {

struct Framing {
  enum class Kind { none, length, chunked, until_close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;     // Kind::length
  const char* fault = nullptr;  // not nullptr: the message must be refused
};

Framing request_framing(const Head& head);
// `request_method` matters since the answer to HEAD has no body whatever it says.
Framing response_framing(const Head& head, std::string_view request_method);

// The number in the head's one Content-Length; -1 where there is none, or none that is sound.
std::int64_t content_length(const Head& head);

// What is written around one piece of a body, by the way the body is framed.
class PieceFrame {
 public:
  enum class Follows { more, nothing };
  PieceFrame(Framing::Kind kind, std::size_t payload_size, Follows follows);

  std::string_view before() const { return {line_.data(), line_size_}; }
  std::string_view behind() const { return behind_; }

 private:
  std::array<char, 18> line_;
  std::size_t line_size_ = 0;
  std::string_view behind_;
};

// Takes a body off the wire piece by piece. Chunk extensions and trailers are dropped; a chunk line
// must be exactly hex digits, an extension without control bytes, CR LF, and short.
class BodyDecoder {
 public:
  BodyDecoder() = default;
  explicit BodyDecoder(const Framing& framing);

  struct Piece {
    std::string_view payload;  // within the bytes given
    std::size_t wire = 0;      // bytes of the input that this covers, framing included
  };

  // Reads as far as the input goes. Chunks are moved together within `data`, so that one call gives
  // one payload.
  Piece decode(char* data, std::size_t size);
  // The sender closed: the end of an until_close body, and a cut one for all others.
  void end_of_input();

  bool done() const { return state_ == State::done; }
  bool failed() const { return state_ == State::failed; }
  // Most that may still come; for bodies that do not say, the largest number.
  std::uint64_t remaining() const;

 private:
  enum class State {
    done,
    failed,
    length,
    until_close,
    chunk_size,
    chunk_extension,
    chunk_line_end,
    chunk_data,
    chunk_data_cr,
    chunk_data_lf,
    trailer_start,
    trailer_name,
    trailer_line,
    trailer_line_end,
    trailers_end,
  };

  void line_byte(char c);
  void chunk_size_byte(char c);

  State state_ = State::done;
  std::uint64_t left_ = 0;      // of the body (length) or of the chunk
  std::size_t line_bytes_ = 0;  // of the chunk line or of all trailers
};

}  // namespace weir::http
