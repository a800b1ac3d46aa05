#pragma once

// A client that sends exactly the bytes it is told to, and reads answers strictly.

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/support/message.h"
#include "tests/support/socket.h"

namespace weir::test {

struct Answer {
  std::string version;  // "HTTP/1.1"
  int status = 0;
  std::string reason;
  Fields fields;
  std::string body;
  Framing framing = Framing::none;
  bool complete = false;  // the body arrived whole, by its own framing
  std::string trailers;
  Ending ending = Ending::open;  // of the connection, when the answer had been read
};

class RawClient : public Socket {
 public:
  // Throws if nobody listens on that port.
  explicit RawClient(std::uint16_t port, int receive_buffer = 0);

  // The next message from the server; an interim answer (1xx) is one of its own.
  // `method` is the one asked with: an answer to HEAD has no body.
  Answer read_answer(std::string_view method = "GET");

  // One request and its answer. `host` and no other field.
  Answer get(std::string_view target);
};

// GET on a connection of its own.
Answer get(std::uint16_t port, std::string_view target);

// `application/problem+json` with all its members, that status and reason (any, if empty), and
// whole.
void expect_problem(const Answer& answer, int status, std::string_view reason = {});

}  // namespace weir::test
