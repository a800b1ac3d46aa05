// An upstream that goes wrong at any step of any attempt, under retries and under hedges: every
// request is answered, by its own answer or with the reason why there is none, and nothing is left.

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"

namespace weir::test {
namespace {

std::string fingerprint(std::string_view body) {
  return std::to_string(body.size()) + "/" + std::to_string(std::hash<std::string_view>{}(body));
}

// How a connection ends: what it does with its last request.
void misbehave(UpstreamConnection& connection, unsigned fate) {
  switch (fate) {
    case 0:
      return connection.reset();
    case 1:
      connection.read_head();
      return connection.reset();
    case 2:  // an early answer
      connection.read_head();
      connection.send(answer(503, "busy"));
      return;
    case 3:
      connection.read_head();
      connection.send("HTTP/1.1 20");
      return connection.close();
  }
  if (!connection.read_request()) return;
  switch (fate) {
    case 4:
      return connection.close();
    case 5:
      connection.send("HTTP/1.1 200 OK\r\nContent-");
      return connection.reset();
    case 6:
      connection.send(answer(503, "busy"));
      return connection.close();
    case 7:
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
      return connection.reset();
    case 8:
      connection.send(answer(503, "busy", {"grpc-retry-pushback-ms: 20"}));
      return;
    case 9:
      connection.send("HTTP/1.1 103 Early Hints\r\n\r\n");
      return;  // and stalls
  }
}

constexpr unsigned kFates = 10;

Script by_chance(unsigned seed) {
  return [seed](UpstreamConnection& connection) {
    std::mt19937 engine(seed + static_cast<unsigned>(connection.number()));
    for (;;) {
      const unsigned fate = static_cast<unsigned>(engine() % (2 * kFates));
      if (fate < kFates) return misbehave(connection, fate);
      const auto request = connection.read_request();
      if (!request || !connection.send(answer(200, fingerprint(request->body)))) return;
    }
  };
}

struct Ends {
  int good = 0, failed = 0, cut = 0;
};

// Sends in pieces, so that attempts begin while the body is still coming.
void send_request(RawClient& client, std::mt19937& engine, const std::string& body) {
  const bool chunked = engine() % 2 == 0;
  std::string bytes =
      chunked
          ? lines({"PUT /x HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"})
          : lines({"PUT /x HTTP/1.1", "Host: h", "Content-Length: " + std::to_string(body.size())});
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t size = std::min<std::size_t>(1 + engine() % 30'000, body.size() - at);
    bytes += chunked ? chunk(body.substr(at, size)) : body.substr(at, size);
    at += size;
    if (engine() % 4 == 0) {
      if (!client.send(bytes)) return;
      bytes.clear();
      std::this_thread::sleep_for(std::chrono::milliseconds{engine() % 15});  // part of the load
    }
  }
  client.send(bytes + std::string(chunked ? last_chunk : ""));
}

void ask(const WeirdProcess& weird, unsigned seed, int times, Ends& ends) {
  std::mt19937 engine(seed);
  std::optional<RawClient> client;
  for (int i = 0; i < times; ++i) {
    const std::size_t size = engine() % 8 == 0 ? engine() % 400'000 : engine() % 3000;
    const std::string body = payload(size, seed + static_cast<unsigned>(i));
    if (!client) client.emplace(weird.port());
    send_request(*client, engine, body);
    Answer got = client->read_answer("PUT");
    while (got.status == 103) got = client->read_answer("PUT");
    if (got.status == 200 && got.complete) {
      ASSERT_EQ(got.body, fingerprint(body));
      ++ends.good;
    } else if (got.status == 200) {
      ++ends.cut;
    } else {
      ASSERT_TRUE(got.status == 502 || got.status == 503 || got.status == 504) << got.status;
      ASSERT_TRUE(got.complete);
      ++ends.failed;
    }
    if (!got.complete || got.fields.get("Connection") == "close") client.reset();
  }
}

void withstand(const std::string& policy) {
  FakeUpstream one(by_chance(100)), two(by_chance(900'000));
  WeirdProcess weird({.servers = {one.url(), two.url()},
                      .upstream = "service_config: {methodConfig: [{name: [{}], " + policy +
                                  "}]}\nretry_budget: {percent: 100000}",
                      .default_rule = "{limit: 1000000, mode: in_flight}"});
  constexpr int kClients = 4, kEach = 40;
  std::vector<Ends> ends(kClients);
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < kClients; ++i) {
    clients.emplace_back([&weird, &ends, i] {
      try {
        ask(weird, 7 * (i + 1), kEach, ends[i]);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "client " << i << ": " << error.what();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  Ends all;
  for (const Ends& of_one : ends) {
    all.good += of_one.good;
    all.failed += of_one.failed;
    all.cut += of_one.cut;
  }
  EXPECT_GT(all.good, kClients * kEach / 2) << all.failed << " failed, " << all.cut << " cut";
  EXPECT_GT(all.failed + all.cut, 0) << "the faults were not felt";
  weird.wait_for_metric("weir_requests_total", {}, kClients * kEach);
  EXPECT_EQ(weird.metric("weir_requests_total"), kClients * kEach);
  EXPECT_EQ(weird.metric("weir_waiting"), 0);
}

TEST(AttemptFaults, RetriesAnswerEveryRequestWhateverGoesWrongAtWhichStep) {
  withstand(
      "timeout: 5s, retryPolicy: {maxAttempts: 4, initialBackoff: 0.01s, maxBackoff: 0.1s, "
      "backoffMultiplier: 2, perAttemptRecvTimeout: 0.5s, retryableStatusCodes: [UNAVAILABLE]}");
}

TEST(AttemptFaults, HedgesAnswerEveryRequestWhateverGoesWrongAtWhichStep) {
  withstand(
      "timeout: 5s, hedgingPolicy: {maxAttempts: 4, hedgingDelay: 0.02s, "
      "perAttemptRecvTimeout: 0.5s, nonFatalStatusCodes: [UNAVAILABLE, DEADLINE_EXCEEDED]}");
}

}  // namespace
}  // namespace weir::test
