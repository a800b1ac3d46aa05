// Heads as they leave the proxy.

#include "proxy/headers.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using http::Framing;
using http::Head;
using http::HeadReader;

constexpr http::Limits kLimits;

class Headers : public testing::Test {
 protected:
  const Head& request(const std::string& fields, const std::string& version = "1.1") {
    return read(HeadReader::Kind::request,
                "GET /sent HTTP/" + version + "\r\nHost: h\r\n" + fields + "\r\n");
  }
  const Head& response(const std::string& fields) {
    return read(HeadReader::Kind::response, "HTTP/1.1 200 Fine\r\n" + fields + "\r\n");
  }
  const Head& read(HeadReader::Kind kind, const std::string& bytes) {
    HeadReader reader(kind, kLimits);
    EXPECT_EQ(reader.read(bytes, head_).state, HeadReader::State::done) << bytes;
    return head_;
  }

  std::string forwarded(const Head& head, bool trusted = false, Framing framing = {},
                        std::string_view upgrade = {}) {
    std::string out;
    append_request_head(out, {head, "/canonical", "h", "192.0.2.1", trusted, framing, upgrade});
    return out;
  }

  Head head_;
};

TEST_F(Headers, ARequestGetsItsTargetHostAndWhereItCameFrom) {
  EXPECT_EQ(forwarded(request("Accept: */*\r\n")),
            "GET /canonical HTTP/1.1\r\nHost: h\r\nAccept: */*\r\nX-Forwarded-For: 192.0.2.1\r\n"
            "X-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\nVia: 1.1 weir\r\n\r\n");
}

TEST_F(Headers, WhatAnUntrustedPeerSaysOfItselfIsReplaced) {
  const std::string out =
      forwarded(request("X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: "
                        "evil\r\nVia: 1.1 evil\r\n"));
  EXPECT_EQ(out.find("6.6.6.6"), out.npos);
  EXPECT_EQ(out.find("https"), out.npos);
  EXPECT_EQ(out.find("evil"), out.npos);
}

TEST_F(Headers, WhatATrustedPeerSaysIsExtended) {
  const std::string out =
      forwarded(request("X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-For: 198.51.100.8\r\n"
                        "X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop\r\nVia: 1.1 lb\r\n"),
                true);
  EXPECT_NE(out.find("X-Forwarded-For: 198.51.100.7, 198.51.100.8, 192.0.2.1\r\n"), out.npos)
      << out;
  EXPECT_NE(out.find("X-Forwarded-Proto: https\r\n"), out.npos);
  EXPECT_NE(out.find("X-Forwarded-Host: shop\r\n"), out.npos);
  EXPECT_NE(out.find("Via: 1.1 lb, 1.1 weir\r\n"), out.npos);
}

TEST_F(Headers, WhatIsForOneHopIsDropped) {
  const std::string out = forwarded(request(
      "Connection: close, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nTrailer: A\r\n"
      "Proxy-Connection: close\r\nProxy-Authorization: x\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
      "Expect: 100-continue\r\nX-Kept: 2\r\n"));
  EXPECT_EQ(out,
            "GET /canonical HTTP/1.1\r\nHost: h\r\nX-Kept: 2\r\nX-Forwarded-For: 192.0.2.1\r\n"
            "X-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\nVia: 1.1 weir\r\n\r\n");
}

TEST_F(Headers, ConnectionCannotNameWhatSafetyHangsOn) {
  const std::string out =
      forwarded(request("Connection: X-Forwarded-For, Host, Authorization, Via, "
                        "Content-Length\r\nAuthorization: x\r\n"));
  for (const char* field :
       {"Host: h\r\n", "Authorization: x\r\n", "X-Forwarded-For: 192.0.2.1\r\n", "Via: "}) {
    EXPECT_NE(out.find(field), out.npos) << field;
  }
}

TEST_F(Headers, FramingIsMadeAnew) {
  const Head& head = request("Content-Length: 005\r\n");
  EXPECT_NE(forwarded(head, false, {Framing::Kind::length, 5}).find("\r\nContent-Length: 5\r\n"),
            std::string::npos);
  EXPECT_EQ(forwarded(head).find("Content-Length"), std::string::npos);
  EXPECT_NE(
      forwarded(head, false, {Framing::Kind::chunked}).find("\r\nTransfer-Encoding: chunked\r\n"),
      std::string::npos);
}

TEST_F(Headers, AnUpgradeIsPassedOnUnlessItCarriesRequestsPastTheRules) {
  EXPECT_EQ(http::upgrade_of(request("Connection: Upgrade\r\nUpgrade: websocket\r\n")),
            "websocket");
  EXPECT_EQ(http::upgrade_of(request("Upgrade: websocket\r\n")), "");
  EXPECT_EQ(http::upgrade_of(request("Connection: Upgrade\r\nUpgrade: h2c\r\n")), "");
  EXPECT_EQ(http::upgrade_of(request("Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n")), "");
  EXPECT_EQ(http::upgrade_of(request("Connection: Upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n")), "");
  EXPECT_EQ(http::upgrade_of(request("Connection: Upgrade\r\nUpgrade: websocket\r\n", "1.0")), "");
  const std::string out =
      forwarded(request("Connection: Upgrade\r\nUpgrade: websocket\r\n"), false, {}, "websocket");
  EXPECT_NE(out.find("Connection: upgrade\r\nUpgrade: websocket\r\n"), out.npos);
}

TEST_F(Headers, AConnectionPersistsAsItsVersionAndItsFieldsSay) {
  EXPECT_TRUE(http::persists(request("")));
  EXPECT_FALSE(http::persists(request("Connection: foo, CLOSE\r\n")));
  EXPECT_FALSE(http::persists(request("", "1.0")));
  EXPECT_TRUE(http::persists(request("Connection: Keep-Alive\r\n", "1.0")));
  EXPECT_FALSE(http::persists(request("Connection: keep-alive\r\nConnection: close\r\n", "1.0")));
}

TEST_F(Headers, AnAnswerKeepsItsFieldsAndGetsAFramingOfOurs) {
  std::string out;
  append_answer_head(
      out, {response("Server: s\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nSet-Cookie: a\r\n"
                     "Set-Cookie: b\r\nTransfer-Encoding: chunked\r\n"),
            {Framing::Kind::chunked},
            -1,
            1,
            true,
            "today"});
  EXPECT_EQ(out,
            "HTTP/1.1 200 Fine\r\nServer: s\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nDate: today\r\n"
            "Transfer-Encoding: chunked\r\n\r\n");
}

TEST_F(Headers, AnAnswerSaysWhatBecomesOfTheConnection) {
  const Head& head = response("Date: then\r\n");
  std::string out;
  append_answer_head(out, {head, {Framing::Kind::none}, 12, 1, false, "today"});
  EXPECT_EQ(out,
            "HTTP/1.1 200 Fine\r\nDate: then\r\nContent-Length: 12\r\nConnection: close\r\n\r\n");
  out.clear();
  append_answer_head(out, {head, {Framing::Kind::length, 3}, -1, 0, true, "today"});
  EXPECT_EQ(
      out,
      "HTTP/1.1 200 Fine\r\nDate: then\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n");
}

}  // namespace
}  // namespace weir
