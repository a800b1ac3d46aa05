// Requests that two parsers could read in two ways: refused with 400 and a closed connection, never
// repaired.

#include <gtest/gtest.h>

#include <set>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

using namespace std::string_literals;

struct Case {
  std::string what;
  std::string request;
};

// Most cases are one line of a head that is otherwise good, or one target.
Case line(std::string what, const std::string& field_line) {
  return {std::move(what), "POST / HTTP/1.1\r\nHost: h\r\n" + field_line + "\r\n\r\n"};
}
Case target(const std::string& text) {
  return {"target " + text, lines({"GET " + text + " HTTP/1.1", "Host: h"})};
}
Case chunks(std::string what, const std::string& body) {
  return {std::move(what),
          lines({"POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"}) + body};
}

class Strictness : public testing::Test {
 protected:
  // Each is answered with 400 (or another of `statuses`) and the connection ends there: what was
  // sent behind it is never taken for a request.
  void expect_refused(const std::vector<Case>& cases, const std::set<int>& statuses = {400}) {
    const std::string poison = lines({"GET /poison HTTP/1.1", "Host: poison"});
    for (const Case& bad : cases) {
      SCOPED_TRACE(bad.what);
      RawClient client(weird_.port());
      client.send(bad.request + poison);
      const Answer answer = client.read_answer();
      EXPECT_TRUE(statuses.contains(answer.status)) << answer.status << " " << answer.body;
      if (!statuses.contains(answer.status)) continue;
      expect_problem(answer, answer.status, answer.status == 400 ? "malformed" : "");
      EXPECT_EQ(answer.fields.get("Connection"), "close");
      EXPECT_EQ(client.read_to_end(), "");
    }
    if (HasFailure()) return;  // what was not refused was forwarded, of course
    for (const Received& request : upstream_.requests()) {
      EXPECT_NE(request.target, "/poison");
      EXPECT_FALSE(request.body_complete) << "forwarded as if it were whole: " << request.raw_head;
    }
  }
  // ... and the upstream has seen nothing at all, though it would have: it sees the next good one.
  void expect_refused_unseen(const std::vector<Case>& cases,
                             const std::set<int>& statuses = {400}) {
    expect_refused(cases, statuses);
    if (HasFailure()) return;
    EXPECT_EQ(get(weird_.port(), "/good").status, 200);
    EXPECT_EQ(upstream_.targets(), std::vector<std::string>{"/good"});
  }

  FakeUpstream upstream_{serve(answer(200, "ok"))};
  WeirdProcess weird_{Config{.servers = {upstream_.url()}}};
};

TEST_F(Strictness, ABodyHasOneLengthToldOnce) {
  expect_refused_unseen({
      line("length and chunked", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
      line("chunked and length", "Transfer-Encoding: chunked\r\nContent-Length: 5"),
      line("chunked and length 0", "Transfer-Encoding: chunked\r\nContent-Length: 0"),
      line("two lengths", "Content-Length: 5\r\nContent-Length: 6"),
      line("two equal lengths", "Content-Length: 5\r\nContent-Length: 5"),
      line("two lengths apart", "Content-Length: 0\r\nX: y\r\ncontent-length: 44"),
      line("a list of lengths", "Content-Length: 5, 5"),
      line("a list of unequal lengths", "Content-Length: 5,6"),
  });
}

TEST_F(Strictness, ALengthIsDigitsAndNothingElse) {
  std::vector<Case> cases;
  for (const char* value : {"+5", "-5", "-0", "5 5", "0x5", "5x", "5.0", "1e1", "", "five", "5;",
                            "\"5\"", "18446744073709551616", "99999999999999999999999999"}) {
    cases.push_back(line("Content-Length '"s + value + "'", "Content-Length: "s + value));
  }
  expect_refused_unseen(cases);
}

TEST_F(Strictness, TheOnlyTransferCodingIsChunkedOnce) {
  std::vector<Case> cases;
  for (const char* value :
       {"xchunked", "identity", "chunked, identity", "identity, chunked", "gzip, chunked", "gzip",
        "chunked, chunked", "chunked,", ",chunked", "chunked;q=1", "\"chunked\"", "chunke",
        "chunkedd", "chunked chunked", ""}) {
    cases.push_back(line("Transfer-Encoding '"s + value + "'", "Transfer-Encoding: "s + value));
  }
  cases.push_back(line("two lines", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked"));
  cases.push_back(
      line("the same twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"));
  cases.push_back(line("vertical tab", "Transfer-Encoding: \vchunked"));
  cases.push_back(
      {"in HTTP/1.0", lines({"POST / HTTP/1.0", "Host: h", "Transfer-Encoding: chunked"})});
  cases.push_back(
      {"in HTTP/1.0 kept alive", lines({"POST / HTTP/1.0", "Host: h", "Connection: keep-alive",
                                        "Transfer-Encoding: chunked"})});
  expect_refused_unseen(cases);
}

TEST_F(Strictness, ChunkLinesAreHexDigitsThatEndWithCrlf) {
  std::vector<Case> cases;
  for (const char* size : {"0x5", "+5", "-5", "5_", "_5", "", " 5", "g", "5g", "5.",
                           "FFFFFFFFFFFFFFFFF", "10000000000000005", ";x"}) {
    cases.push_back(chunks("size '"s + size + "'", size + "\r\nhello\r\n0\r\n\r\n"s));
  }
  cases.push_back(chunks("bare LF after the size", "5\nhello\r\n0\r\n\r\n"));
  cases.push_back(chunks("bare CR after the size", "5\rhello\r\n0\r\n\r\n"));
  cases.push_back(chunks("bare LF after the data", "5\r\nhello\n0\r\n\r\n"));
  cases.push_back(chunks("more data than told", "5\r\nhello!\r\n0\r\n\r\n"));
  cases.push_back(chunks("bare LF after the last size", "5\r\nhello\r\n0\n\r\n"));
  cases.push_back(chunks("bare LF in an extension", "5;a\nhello\r\n0\r\n\r\n"));
  cases.push_back(chunks("bare CR in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n"));
  cases.push_back(chunks("NUL in an extension", "5;a\0b\r\nhello\r\n0\r\n\r\n"s));
  cases.push_back(chunks("control byte in an extension", "5;a\x01\r\nhello\r\n0\r\n\r\n"s));
  cases.push_back(
      chunks("64 KiB of extension", "5;" + std::string(65536, 'a') + "\r\nhello\r\n0\r\n\r\n"));
  expect_refused(cases);
}

TEST_F(Strictness, TrailersAreFieldsTooThoughTheyAreDropped) {
  expect_refused({
      chunks("bare LF", "0\r\nX: y\n\r\n"),
      chunks("space before the colon", "0\r\nX : y\r\n\r\n"),
      chunks("no colon", "0\r\nGET /poison HTTP/1.1\r\n\r\n"),
      chunks("NUL", "0\r\nX: a\0b\r\n\r\n"s),
      chunks("obs-fold", "0\r\nX: a\r\n b\r\n\r\n"),
  });
  expect_refused({chunks("64 KiB of them", "0\r\nX: " + std::string(65536, 'a') + "\r\n\r\n")},
                 {400, 431});
}

TEST_F(Strictness, FieldLinesAreExact) {
  expect_refused_unseen({
      line("obs-fold", "X: a\r\n b"),
      line("obs-fold with a tab", "X: a\r\n\tb"),
      {"a first line that begins with a space", "GET / HTTP/1.1\r\n Host: h\r\n\r\n"},
      line("space before the colon", "X : y"),
      line("tab before the colon", "X\t: y"),
      line("space before the colon of a framing field", "Transfer-Encoding : chunked"),
      line("empty name", ": y"),
      line("no colon", "X"),
      line("space in the name", "X Y: z"),
      line("parenthesis in the name", "X(Y): z"),
      line("quote in the name", "X\"Y: z"),
      line("underscore in the name", "X_Forwarded_For: 6.6.6.6"),
      line("underscore in a framing field's name", "Content_Length: 5"),
      line("non-ASCII in the name", "X\xc3\xa9: z"),
      line("NUL in the name", "X\0Y: z"s),
      line("NUL in the value", "X: a\0b"s),
      line("control byte in the value", "X: a\x01z"),
      line("escape in the value", "X: a\x1b[0m"),
      line("DEL in the value", "X: a\x7fz"),
      line("bare CR in the value", "X: a\rb"),
      line("bare LF in the value", "X: a\nContent-Length: 5"),
      line("CR CR LF", "X: a\r"),
      {"bare LF at the end of each line", "GET / HTTP/1.1\nHost: h\n\n"},
      {"bare LF after the request line", "GET / HTTP/1.1\nHost: h\r\n\r\n"},
      {"bare LF as the blank line", "GET / HTTP/1.1\r\nHost: h\r\n\n"},
      {"bare CR as the blank line", "GET / HTTP/1.1\r\nHost: h\r\n\rX: y\r\n\r\n"},
  });
}

TEST_F(Strictness, ThereIsExactlyOneWellFormedHost) {
  std::vector<Case> cases{
      {"none", lines({"GET / HTTP/1.1", "X: y"})},
      {"none though the target is absolute", lines({"GET http://h/ HTTP/1.1", "X: y"})},
      {"two", lines({"GET / HTTP/1.1", "Host: a", "Host: b"})},
      {"the same twice", lines({"GET / HTTP/1.1", "Host: a", "Host: a"})},
      {"two in HTTP/1.0", lines({"GET / HTTP/1.0", "Host: a", "Host: b"})},
  };
  for (const char* host : {"a b", "a/b", "user@a", "a,b", "a\\b", "a?b", "a#b", "a:b", "a:99999",
                           "[::1", "<a>", "\xc3\xa9"}) {
    cases.push_back({"Host '"s + host + "'", lines({"GET / HTTP/1.1", "Host: "s + host})});
  }
  expect_refused_unseen(cases);
}

TEST_F(Strictness, TheRequestLineIsExact) {
  expect_refused_unseen({
      {"two spaces before the target", lines({"GET  / HTTP/1.1", "Host: h"})},
      {"two spaces after the target", lines({"GET /  HTTP/1.1", "Host: h"})},
      {"a tab for a space", lines({"GET\t/ HTTP/1.1", "Host: h"})},
      {"a space in the target", lines({"GET /a b HTTP/1.1", "Host: h"})},
      {"a space at the end", lines({"GET / HTTP/1.1 ", "Host: h"})},
      {"no target", lines({"GET HTTP/1.1", "Host: h"})},
      {"a bad byte in the method", lines({"G(T / HTTP/1.1", "Host: h"})},
      {"NUL in the method", "GET\0 / HTTP/1.1\r\nHost: h\r\n\r\n"s},
      {"not HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"s},
  });
}

TEST_F(Strictness, TheVersionIs10Or11) {
  // A version that is not spoken is as malformed as can be; 505 would say it more exactly.
  expect_refused_unseen(
      {
          {"no version", lines({"GET /", "Host: h"})},
          {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
          {"HTTP/2.0", lines({"GET / HTTP/2.0", "Host: h"})},
          {"HTTP/1.2", lines({"GET / HTTP/1.2", "Host: h"})},
          {"HTTP/0.9", lines({"GET / HTTP/0.9", "Host: h"})},
          {"HTTP/1.10", lines({"GET / HTTP/1.10", "Host: h"})},
          {"HTTP/1", lines({"GET / HTTP/1", "Host: h"})},
          {"lower case", lines({"GET / http/1.1", "Host: h"})},
          {"another protocol", lines({"GET / ICY/1.1", "Host: h"})},
      },
      {400, 505});
}

TEST_F(Strictness, TheTargetHasOneReading) {
  std::vector<Case> cases;
  for (const char* text : {"/a#b",
                           "#",
                           "/a?b#c",
                           "/a\xc3\xa9",
                           "/\xff",
                           "/a?\xc3\xa9",
                           "/a\x01",
                           "/a\x7f",
                           "/%zz",
                           "/%4",
                           "/%",
                           "/%00",
                           "/a%00b",
                           "/a%2fb",
                           "/a%2Fb",
                           "/a%5cb",
                           "/a\\b",
                           "/a\\..\\a",
                           "/a/..%2fa",
                           "/..",
                           "/../a",
                           "/a/../../b",
                           "/%2e%2e/a",
                           "/xyz/.%00../a",
                           "a",
                           "*",
                           "?x",
                           "http:",
                           "http://",
                           "http:///a",

                           "http://user@h/a",
                           "http://h:x/a",
                           "h:80"}) {
    cases.push_back(target(text));
  }
  cases.push_back({"NUL in the target", "GET /a\0b HTTP/1.1\r\nHost: h\r\n\r\n"s});
  cases.push_back(
      {"asterisk for POST", lines({"POST * HTTP/1.1", "Host: h", "Content-Length: 0"})});
  expect_refused_unseen(cases);
}

TEST_F(Strictness, ARefusalIsReadableToItsEndThoughTheConnectionCloses) {
  RawClient client(weird_.port());
  client.send(lines({"GET / HTTP/1.1", "Host: a", "Host: b"}));
  expect_problem(client.read_answer(), 400, "malformed");
  EXPECT_EQ(client.wait_for_end(), Ending::fin);
}

TEST_F(Strictness, ARequestThatStopsInTheMiddleIsNotForwarded) {
  for (const char* half :
       {"GET / HTTP/1.1\r\nHost: h\r\n", "GET / HT", "GET / HTTP/1.1\r\nHost: h\r\n\r"}) {
    RawClient client(weird_.port());
    client.send(half);
    client.finish_sending();
    client.wait_for_end();
  }
  EXPECT_EQ(get(weird_.port(), "/good").status, 200);
  EXPECT_EQ(upstream_.targets(), std::vector<std::string>{"/good"});
}

TEST(StrictnessKept, EscapedSlashesPassWhereTheConfigurationKeepsThem) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  WeirdProcess weird({.servers = {upstream.url()}, .rest = "escaped_slashes: keep"});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/a%2fb").status, 200);
  EXPECT_EQ(client.get("/a%5Cb").status, 200);
  EXPECT_EQ(upstream.targets(), (std::vector<std::string>{"/a%2Fb", "/a%5Cb"}));
}

}  // namespace
}  // namespace weir::test
