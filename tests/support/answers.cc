#include "tests/support/answers.h"

#include <algorithm>

namespace weir::test {

std::string answer(int status, std::string_view body,
                   std::initializer_list<std::string_view> extra) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " As Told\r\n";
  for (std::string_view line : extra) text.append(line).append("\r\n");
  text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  return text.append(body);
}

std::string chunked_answer(std::initializer_list<std::string_view> chunks) {
  std::string text = "HTTP/1.1 200 As Told\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::string_view bytes : chunks) text += chunk(bytes);
  return text.append(last_chunk);
}

Script serve(std::string reply) {
  return serve([reply = std::move(reply)](const Received&) { return reply; });
}

Script serve(std::function<std::string(const Received&)> reply) {
  return [reply = std::move(reply)](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (!connection.send(reply(*request))) return;
    }
  };
}

Script after_request(Script misbehave) {
  return [misbehave = std::move(misbehave)](UpstreamConnection& connection) {
    if (connection.read_request()) misbehave(connection);
  };
}

Script send_and_close(std::string bytes) {
  return after_request([bytes = std::move(bytes)](UpstreamConnection& connection) {
    connection.send(bytes);
    connection.close();
  });
}

Script send_and_reset(std::string bytes) {
  return after_request([bytes = std::move(bytes)](UpstreamConnection& connection) {
    connection.send(bytes);
    connection.reset();
  });
}

Script send_and_stall(std::string bytes) {
  return after_request(
      [bytes = std::move(bytes)](UpstreamConnection& connection) { connection.send(bytes); });
}

Script in_turn(std::vector<Script> scripts) {
  return [scripts = std::move(scripts)](UpstreamConnection& connection) {
    const auto turn = static_cast<std::size_t>(connection.number());
    scripts[std::min(turn, scripts.size()) - 1](connection);
  };
}

}  // namespace weir::test
