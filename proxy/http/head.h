#pragma once

// The head of one HTTP/1 message (start line and fields) and the reader that makes it out of bytes.
// llhttp tells the parts apart; a scan of our own before it refuses what llhttp, depending on its
// version, lets through: bare CR or LF, control bytes, folded fields. Pure: no socket, no clock.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/field.h"
#include "proxy/http/limits.h"

namespace weir::http {

// What a head's Connection fields list.
struct ConnectionOptions {
  bool close = false, keep_alive = false, upgrade = false;
  std::vector<std::string_view> fields;  // further names: of fields for this hop only
};

class Head {
 public:
  Head() = default;
  Head(const Head&) = delete;  // the views below point into bytes_
  Head& operator=(const Head&) = delete;

  std::string_view method, target;  // of a request
  int status = 0;                   // of a response
  std::string_view reason;
  int minor_version = 1;  // HTTP/1.0 or HTTP/1.1
  std::vector<Field> fields;
  ConnectionOptions connection;

  // The first field of that kind; nullptr: there is none.
  const Field* find(Known known) const;
  std::size_t count(Known known) const;

  // Gives back the memory of one that was larger than most; what it held is gone then.
  void release_large();

 private:
  friend class HeadReader;
  std::string bytes_;  // kept from one message to the next for its capacity
};

class HeadReader {
 public:
  enum class Kind { request, response };
  enum class State { more, done, malformed, target_too_long, too_large };

  struct Result {
    State state;
    std::size_t consumed = 0;  // done: length of the head on the wire
    const char* fault = "";    // malformed: what is wrong
  };

  HeadReader(Kind kind, const Limits& limits) : kind_(kind), limits_(limits) {}

  // `received` is all there is of the message so far, from its first byte on; what was looked at by
  // the last call is not looked at again. After `done` the next call begins a new message.
  Result read(std::string_view received, Head& head);

 private:
  Result scan(std::string_view received);
  Result parse(std::string_view bytes, Head& head) const;

  const Kind kind_;
  const Limits limits_;
  std::size_t scanned_ = 0;     // bytes known to be clean
  std::size_t line_start_ = 0;  // of the line that scanned_ is in
  std::size_t lines_ = 0;       // finished ones
};

}  // namespace weir::http
