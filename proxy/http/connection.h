#pragma once

// One client's connection and the request on it that is being served. The server reads the head,
// checks it and hands the connection to its handler; the handler answers, the server sees to what
// is left of the request and goes on to the next. Owned by its loop's thread.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "proxy/forwarded.h"
#include "proxy/http/framing.h"
#include "proxy/http/head.h"
#include "proxy/http/local_reply.h"
#include "proxy/http/stream.h"

namespace weir::http {

struct ServerOptions {
  Limits limits;
  Timeouts timeouts;
};

class Connection {
 public:
  // Takes over a connected socket.
  Connection(Loop& loop, int socket, const ServerOptions& options);

  Stream& stream() { return stream_; }
  Loop& loop() { return stream_.loop(); }
  const Address& peer() const { return peer_; }
  const std::string& peer_text() const { return peer_text_; }
  const Timeouts& timeouts() const { return options_.timeouts; }

  // Reads the next request's head. Nothing: there is none to serve, and an answer has been given
  // where one was due.
  Task<bool> read_request();
  // Why read_request() turned the request away, if it did.
  std::optional<Denial> refused() const { return refused_; }
  const Head& request() const { return request_; }
  const Framing& framing() const { return framing_; }
  BodyDecoder& body() { return body_; }  // of the request

  // Tells a client that asked whether to send its body to go on, once.
  Task<void> send_continue();

  // Gives an answer of our own. To be called at most once, and before any other byte of an answer.
  Task<void> reply(LocalReply reply);
  Task<void> reply(int status, std::string_view content_type, std::string_view body);

  // Whether the connection may be used again after this answer; the answer's head says so.
  bool keep_alive() const { return keep_alive_; }
  void close_after_answer() { keep_alive_ = false; }
  // For an answer that comes while the request's body is still under way: decides keep_alive().
  void answer_early();
  // Ends the connection so that the client cannot take a cut answer for a whole one.
  enum class Cut { close, reset };
  void cut(Cut how);
  // After the answer, also one of read_request()'s: sees the rest of the request off. True:
  // read_request() may be called again.
  Task<bool> finish();

  // The client left, or broke the connection, while its request was being served.
  bool gone() const { return stream_.peer_left() || stream_.aborted(); }
  // Called when that happens; at once, on the loop.
  void on_gone(std::function<void()> handler) { on_gone_ = std::move(handler); }

  bool idle() const { return idle_; }  // between requests
  void abort();

 private:
  std::optional<LocalReply> judge(const HeadReader::Result& result);
  Task<bool> refuse(LocalReply refusal);
  Task<void> linger();

  const ServerOptions options_;
  Stream stream_;
  const Address peer_;
  const std::string peer_text_;
  HeadReader reader_;
  Head request_;
  Framing framing_;
  BodyDecoder body_;
  std::optional<Denial> refused_;
  std::string out_;  // answers of our own
  bool keep_alive_ = true;
  bool expects_continue_ = false;
  bool idle_ = true;
  std::function<void()> on_gone_;
};

}  // namespace weir::http
