#include "tests/support/raw_client.h"

#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>

namespace weir::test {
namespace {

Descriptor connect_or_throw(std::uint16_t port, int receive_buffer) {
  Descriptor fd = try_connect(port, receive_buffer);
  if (fd.get() < 0) throw std::runtime_error("connection refused by port " + std::to_string(port));
  return fd;
}

bool never_has_body(std::string_view method, int status) {
  return method == "HEAD" || status < 200 || status == 204 || status == 304;
}

// "HTTP/1.1 200 OK", by the letter.
Answer parse_status_line(const std::string& line) {
  const auto is_digit = [&](std::size_t at) {
    return std::isdigit(static_cast<unsigned char>(line[at])) != 0;
  };
  if (line.size() < 13 || !(line.starts_with("HTTP/1.0 ") || line.starts_with("HTTP/1.1 ")) ||
      line[9] == '0' || !is_digit(9) || !is_digit(10) || !is_digit(11) || line[12] != ' ') {
    throw MalformedMessage("bad status line '" + line + "'");
  }
  Answer answer;
  answer.version = line.substr(0, 8);
  answer.status = std::stoi(line.substr(9, 3));
  answer.reason = line.substr(13);
  return answer;
}

}  // namespace

RawClient::RawClient(std::uint16_t port, int receive_buffer)
    : Socket(connect_or_throw(port, receive_buffer)) {}

Answer RawClient::read_answer(std::string_view method) {
  const std::optional<Head> head = read_head(*this);
  if (!head) throw MalformedMessage("the connection ended where an answer was due");
  Answer answer = parse_status_line(head->start_line);
  answer.fields = head->fields;
  const Framing framing = never_has_body(method, answer.status)
                              ? Framing::none
                              : framing_of(head->fields, Framing::until_close);
  Body body = read_body(*this, head->fields, framing);
  answer.body = std::move(body.bytes);
  answer.framing = body.framing;
  answer.complete = body.complete;
  answer.trailers = std::move(body.trailers);
  answer.ending = ending();
  return answer;
}

Answer RawClient::get(std::string_view target) {
  send("GET " + std::string(target) + " HTTP/1.1\r\nHost: weir.test\r\n\r\n");
  return read_answer();
}

Answer get(std::uint16_t port, std::string_view target) { return RawClient(port).get(target); }

void expect_problem(const Answer& answer, int status, std::string_view reason) {
  EXPECT_EQ(answer.status, status) << answer.body;
  EXPECT_TRUE(answer.complete);
  EXPECT_TRUE(answer.fields.get("Content-Type").starts_with("application/problem+json"))
      << answer.fields.get("Content-Type");
  const auto problem = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(problem.is_object()) << "not a JSON object: '" << answer.body << "'";
  for (const char* member : {"type", "title", "detail", "reason"}) {
    EXPECT_TRUE(problem.contains(member) && problem[member].is_string() && problem[member] != "")
        << member << " is missing in " << answer.body;
  }
  EXPECT_TRUE(problem.contains("status") && problem["status"] == status) << answer.body;
  if (!reason.empty()) {
    EXPECT_EQ(problem.value("reason", ""), reason) << answer.body;
  }
}

}  // namespace weir::test
