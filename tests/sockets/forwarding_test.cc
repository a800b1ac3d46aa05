// The head of a request on its way to the upstream, and of an answer on its way back.

#include <gtest/gtest.h>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

// Weir in front of an upstream that answers "ok" to everything.
class Forwarding : public testing::Test {
 protected:
  explicit Forwarding(const std::string& rest = "")
      : weird_(Config{.servers = {upstream_.url()}, .rest = rest}), client_(weird_.port()) {}

  // The request as the upstream got it.
  Received forwarded(std::string_view request) {
    client_.send(request);
    const Answer answer = client_.read_answer();
    EXPECT_EQ(answer.status, 200) << answer.body;
    return upstream_.wait_for_requests(++sent_).back();
  }
  Received forwarded_target(std::string_view target) {
    return forwarded(lines({"GET " + std::string(target) + " HTTP/1.1", "Host: h"}));
  }

  FakeUpstream upstream_{serve(answer(200, "ok"))};
  WeirdProcess weird_;
  RawClient client_;
  std::size_t sent_ = 0;
};

TEST_F(Forwarding, TheMethodReachesTheUpstream) {
  for (const std::string method : {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
    const Received request =
        forwarded(lines({method + " /thing HTTP/1.1", "Host: h", "Content-Length: 0"}));
    EXPECT_EQ(request.method, method);
    EXPECT_EQ(request.target, "/thing");
    EXPECT_EQ(request.version, "HTTP/1.1");
  }
}

TEST_F(Forwarding, TheQueryIsForwardedByteForByte) {
  for (const std::string query :
       {"?", "?a=b&c=d", "?x=%2f%2E..//", "?a?b", "?%41", "?a=[b]\\\"|"}) {
    EXPECT_EQ(forwarded_target("/search" + query).target, "/search" + query);
  }
}

TEST_F(Forwarding, TheCanonicalPathIsForwarded) {
  const std::map<std::string, std::string> canonical{
      {"/a", "/a"},         {"//a", "/a"},        {"/./a", "/a"},
      {"/b/../a", "/a"},    {"/%61", "/a"},       {"/a/", "/a/"},
      {"/a;x=1", "/a;x=1"}, {"/A", "/A"},         {"/a%20", "/a%20"},
      {"/%2e/a", "/a"},     {"/%7eme", "/~me"},   {"/%c0%af", "/%C0%AF"},
      {"/%252e", "/%252e"}, {"/a%3ab", "/a%3Ab"}, {"/a//b///c?d//e", "/a/b/c?d//e"},
      {"/a/b/..", "/a/"},   {"/", "/"},
  };
  for (const auto& [sent, expected] : canonical)
    EXPECT_EQ(forwarded_target(sent).target, expected) << sent;
}

TEST_F(Forwarding, FieldsReachTheUpstreamInOrderAndUnchanged) {
  const Received request =
      forwarded(lines({"GET / HTTP/1.1", "Host: h", "X-One: 1", "Accept: a/b;q=0.5, */*",
                       "x-empty:", "X-One:   2 \t", "Cookie: a=b; c=\"d\"",
                       "X-Utf8: gr\xc3\xbc\xc3\x9f", "Authorization: Basic xyz="}));
  EXPECT_EQ(request.fields.all("X-One"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(request.fields.get("Accept"), "a/b;q=0.5, */*");
  EXPECT_TRUE(request.fields.has("X-Empty"));
  EXPECT_EQ(request.fields.get("Cookie"), "a=b; c=\"d\"");
  EXPECT_EQ(request.fields.get("X-Utf8"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(request.fields.get("Authorization"), "Basic xyz=");
}

TEST_F(Forwarding, HopByHopFieldsOfARequestStayBehind) {
  const Received request = forwarded(
      lines({"GET / HTTP/1.1", "Host: h", "Connection: keep-alive, X-Named, x-also-named",
             "X-Named: 1", "X-Also-Named: 2", "X-Kept: 3", "Keep-Alive: timeout=5",
             "Proxy-Connection: keep-alive", "TE: trailers", "Trailer: X-Sum", "Upgrade: h2c"}));
  for (const char* name :
       {"X-Named", "X-Also-Named", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Upgrade"}) {
    EXPECT_FALSE(request.fields.has(name)) << name;
  }
  EXPECT_EQ(request.fields.get("X-Kept"), "3");
  EXPECT_EQ(request.fields.get("Connection").find("amed"), std::string::npos);
}

TEST_F(Forwarding, ConnectionCannotNameAwayWhatTheUpstreamReliesOn) {
  const Received request = forwarded(
      lines({"POST / HTTP/1.1", "Host: h", "Content-Length: 2", "Authorization: secret",
             "Connection: X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, Via, Host, "
             "Content-Length, Authorization",
             "X-Forwarded-For: 6.6.6.6"}) +
      "hi");
  EXPECT_EQ(request.fields.get("X-Forwarded-For"), "127.0.0.1");
  EXPECT_EQ(request.fields.get("X-Forwarded-Proto"), "http");
  EXPECT_EQ(request.fields.get("X-Forwarded-Host"), "h");
  EXPECT_TRUE(request.fields.has("Via"));
  EXPECT_EQ(request.fields.get("Host"), "h");
  EXPECT_EQ(request.fields.get("Authorization"), "secret");
  EXPECT_EQ(request.body, "hi");
}

TEST_F(Forwarding, AnOldClientThatNamesNoHostGetsTheServers) {
  const Received request = forwarded(lines({"GET /old HTTP/1.0"}));
  const std::string server = "127.0.0.1:" + std::to_string(upstream_.port());
  EXPECT_EQ(request.fields.all("Host"), std::vector<std::string>{server});
  EXPECT_EQ(request.fields.all("X-Forwarded-Host"), std::vector<std::string>{server});
}

TEST(ForwardingToIPv6, AnOldClientThatNamesNoHostGetsTheServersInBrackets) {
  FakeUpstream upstream(serve(answer(200, "ok")));
  const std::string server = "[::ffff:127.0.0.1]:" + std::to_string(upstream.port());
  WeirdProcess weird({.servers = {"\"http://" + server + "\""}});
  RawClient client(weird.port());
  client.send(lines({"GET /old HTTP/1.0"}));
  EXPECT_EQ(client.read_answer().status, 200);
  const Received request = upstream.requests().at(0);
  EXPECT_EQ(request.fields.all("Host"), std::vector<std::string>{server});
  EXPECT_EQ(request.fields.all("X-Forwarded-Host"), std::vector<std::string>{server});
}

TEST_F(Forwarding, WhatAStrangerSaysAboutWhoForwardedItIsReplaced) {
  const Received request =
      forwarded(lines({"GET / HTTP/1.1", "Host: real.example", "X-Forwarded-For: 1.2.3.4",
                       "X-Forwarded-For: 5.6.7.8", "X-Forwarded-Proto: https",
                       "X-Forwarded-Host: fake.example", "Via: 1.1 liar"}));
  EXPECT_EQ(request.fields.all("X-Forwarded-For"), std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(request.fields.all("X-Forwarded-Proto"), std::vector<std::string>{"http"});
  EXPECT_EQ(request.fields.all("X-Forwarded-Host"), std::vector<std::string>{"real.example"});
  EXPECT_EQ(request.fields.count("Via"), 1u);
  EXPECT_EQ(request.fields.get("Via").find("liar"), std::string::npos);
}

class ForwardingForATrustedProxy : public Forwarding {
 protected:
  ForwardingForATrustedProxy() : Forwarding("trusted_proxies: [127.0.0.0/8]") {}
};

TEST_F(ForwardingForATrustedProxy, WhatItSaysAboutWhoForwardedItIsExtended) {
  const Received request =
      forwarded(lines({"GET / HTTP/1.1", "Host: inner.example", "X-Forwarded-For: 1.2.3.4",
                       "X-Forwarded-For: 5.6.7.8", "X-Forwarded-Proto: https",
                       "X-Forwarded-Host: outer.example", "Via: 1.1 edge"}));
  EXPECT_EQ(request.fields.get("X-Forwarded-For"), "1.2.3.4, 5.6.7.8, 127.0.0.1");
  EXPECT_TRUE(request.fields.get("X-Forwarded-Proto").starts_with("https"));
  EXPECT_TRUE(request.fields.get("X-Forwarded-Host").starts_with("outer.example"));
  const std::string via = request.fields.get("Via");
  EXPECT_TRUE(via.starts_with("1.1 edge, 1.1 ")) << via;
}

TEST_F(ForwardingForATrustedProxy, WhatItLeavesUnsaidIsSet) {
  const Received request = forwarded_target("/");
  EXPECT_EQ(request.fields.get("X-Forwarded-For"), "127.0.0.1");
  EXPECT_EQ(request.fields.get("X-Forwarded-Proto"), "http");
  EXPECT_EQ(request.fields.get("X-Forwarded-Host"), "h");
  EXPECT_TRUE(request.fields.get("Via").starts_with("1.1 "));
}

TEST_F(Forwarding, TheClientsHostIsForwarded) {
  for (const std::string host : {"shop.example", "shop.example:8080", "127.0.0.1", "[::1]:80"}) {
    EXPECT_EQ(forwarded(lines({"GET / HTTP/1.1", "Host: " + host})).fields.all("Host"),
              std::vector<std::string>{host});
  }
}

TEST_F(Forwarding, TheAuthorityOfAnAbsoluteFormTargetWinsOverHost) {
  const Received request =
      forwarded(lines({"GET http://inside.example:81/x/../a?b HTTP/1.1", "Host: outside.example"}));
  EXPECT_EQ(request.target, "/a?b");
  EXPECT_EQ(request.fields.all("Host"), std::vector<std::string>{"inside.example:81"});
  EXPECT_EQ(request.fields.get("X-Forwarded-Host"), "inside.example:81");
  EXPECT_EQ(forwarded_target("http://inside.example").target, "/");
  EXPECT_EQ(forwarded_target("http://inside.example?q").target, "/?q");
}

TEST_F(Forwarding, OptionsAsteriskIsForwardedAsItIs) {
  const Received request = forwarded(lines({"OPTIONS * HTTP/1.1", "Host: h"}));
  EXPECT_EQ(request.method, "OPTIONS");
  EXPECT_EQ(request.target, "*");
}

TEST_F(Forwarding, ConnectIsRefusedWith405) {
  client_.send(lines({"CONNECT elsewhere.example:443 HTTP/1.1", "Host: elsewhere.example:443"}) +
               lines({"GET /poison HTTP/1.1", "Host: h"}));
  expect_problem(client_.read_answer(), 405);
  client_.wait_for_end();
  EXPECT_EQ(client_.unread(), "");
  EXPECT_EQ(upstream_.connections(), 0);
}

TEST_F(Forwarding, AnUnknownExpectationGets417) {
  client_.send(lines({"POST / HTTP/1.1", "Host: h", "Expect: miracles", "Content-Length: 0"}));
  expect_problem(client_.read_answer(), 417);
  EXPECT_EQ(upstream_.connections(), 0);
}

TEST_F(Forwarding, AnUnknownExpectationBesideAKnownOneGets417) {
  client_.send(lines({"POST / HTTP/1.1", "Host: h", "Expect: 100-continue", "Expect: miracles",
                      "Content-Length: 0"}));
  expect_problem(client_.read_answer(), 417);
  EXPECT_EQ(upstream_.connections(), 0);
}

TEST(ForwardingAnswers, StatusAndFieldsReachTheClientInOrderAndUnchanged) {
  FakeUpstream upstream(
      serve(answer(418, "short and stout",
                   {"Content-Type: text/tea", "Set-Cookie: a=1; Path=/", "ETag: \"x\"",
                    "Set-Cookie: b=2", "Server: pot", "X-Empty:"})));
  WeirdProcess weird({.servers = {upstream.url()}});
  const Answer answer = get(weird.port(), "/");
  EXPECT_EQ(answer.version, "HTTP/1.1");
  EXPECT_EQ(answer.status, 418);
  EXPECT_EQ(answer.body, "short and stout");
  EXPECT_EQ(answer.fields.get("Content-Type"), "text/tea");
  EXPECT_EQ(answer.fields.all("Set-Cookie"), (std::vector<std::string>{"a=1; Path=/", "b=2"}));
  EXPECT_EQ(answer.fields.get("ETag"), "\"x\"");
  EXPECT_EQ(answer.fields.get("Server"), "pot");
  EXPECT_TRUE(answer.fields.has("X-Empty"));
}

TEST(ForwardingAnswers, HopByHopFieldsOfAnAnswerStayBehind) {
  FakeUpstream upstream(serve(
      answer(200, "ok",
             {"Connection: keep-alive, X-Named", "X-Named: 1", "X-Kept: 2", "Keep-Alive: timeout=5",
              "Proxy-Connection: keep-alive", "Trailer: X-Sum", "Upgrade: h2c"})));
  WeirdProcess weird({.servers = {upstream.url()}});
  const Answer answer = get(weird.port(), "/");
  for (const char* name : {"X-Named", "Keep-Alive", "Proxy-Connection", "Trailer", "Upgrade"}) {
    EXPECT_FALSE(answer.fields.has(name)) << name;
  }
  EXPECT_EQ(answer.fields.get("X-Kept"), "2");
}

TEST(ForwardingAnswers, AnUpstreamThatClosesDoesNotCloseTheClientsConnection) {
  FakeUpstream upstream(send_and_close(answer(200, "bye", {"Connection: close"})));
  WeirdProcess weird({.servers = {upstream.url()}});
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/1").body, "bye");
  EXPECT_EQ(client.get("/2").body, "bye");
  EXPECT_EQ(upstream.connections(), 2);
}

}  // namespace
}  // namespace weir::test
