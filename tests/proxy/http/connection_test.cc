// What cannot be brought about from outside the process; the rest is told through sockets.

#include "proxy/http/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "tests/support/fast_clock.h"

namespace weir::http {
namespace {

Task<void> read_and_send_continue(Connection& connection) {
  const bool read = co_await connection.read_request();
  if (read) co_await connection.send_continue();
}

TEST(Continue, ThatTheClientDoesNotTakeEndsTheConnection) {
  std::array<int, 2> pair;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
  const auto [client, server] = pair;
  const std::string request =
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  ASSERT_EQ(::send(client, request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  // An earlier answer that the client has not read leaves no room for a byte.
  const std::string earlier(4096, 'x');
  while (::send(server, earlier.data(), earlier.size(), 0) > 0) {
  }

  const test::FastClock clock;
  Loop loop(clock);
  ServerOptions options;
  options.timeouts.body_idle = std::chrono::seconds{2};
  Connection connection(loop, server, options);
  int times_gone = 0;
  connection.on_gone([&] { ++times_gone; });
  spawn(read_and_send_continue(connection), [&] { loop.stop(); });
  loop.run();
  EXPECT_TRUE(connection.gone());
  EXPECT_EQ(times_gone, 1);

  std::array<char, 4096> piece;
  ssize_t count;
  while ((count = ::recv(client, piece.data(), piece.size(), 0)) > 0) {
  }
  EXPECT_EQ(count, 0) << "still open";
  ::close(client);
}

TEST(Stream, ThatTakesNothingAtOnceSaysSoAndKeepsNothingForLater) {
  std::array<int, 2> pair;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
  const auto [peer, own] = pair;
  std::string earlier(4096, 'x');
  while (::send(own, earlier.data(), earlier.size(), 0) > 0) {
  }
  const test::FastClock clock;
  Loop loop(clock);
  Stream stream(loop, own);
  Pieces request;
  request.add("GET");
  EXPECT_EQ(stream.write_now(request), Stream::Status::full);
  EXPECT_EQ(stream.sent(), 0u);
  while (::recv(peer, earlier.data(), earlier.size(), 0) > 0) {
  }
  EXPECT_EQ(::recv(peer, earlier.data(), earlier.size(), 0), -1) << "nothing came of itself";
  EXPECT_EQ(stream.write_now(request), Stream::Status::ok);
  EXPECT_TRUE(request.empty());
  EXPECT_EQ(::recv(peer, earlier.data(), earlier.size(), 0), 3);
  ::close(peer);
}

Task<void> wait_for_more(Stream& stream, Stream::Status& status) {
  status = co_await stream.more(std::chrono::hours{1});
}

TEST(Stream, ABufferThatIsGivenBackIsNoEndForWhoWaitsForMore) {
  std::array<int, 2> pair;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
  const test::FastClock clock;
  Loop loop(clock);
  Stream stream(loop, pair[1]);
  Stream::Status status = Stream::Status::aborted;
  spawn(wait_for_more(stream, status), [&] { loop.stop(); });
  stream.release_buffer();
  ASSERT_EQ(::send(pair[0], "more", 4, 0), 4);
  loop.run();
  EXPECT_EQ(status, Stream::Status::ok);
  EXPECT_EQ(stream.received(), "more");
  EXPECT_FALSE(stream.peer_left());
  ::close(pair[0]);
}

TEST(Stream, ThatIsWaitedOnWithNothingToReadHoldsNoBuffer) {
  std::array<int, 2> pair;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
  const test::FastClock clock;
  Loop loop(clock);
  auto buffer = loop.take_buffer(Loop::kBuffer);
  const char* const only = buffer.get();
  loop.return_buffer(std::move(buffer), Loop::kBuffer);
  Stream stream(loop, pair[1]);
  Stream::Status status = Stream::Status::aborted;
  spawn(wait_for_more(stream, status), [&] { loop.stop(); });
  buffer = loop.take_buffer(Loop::kBuffer);
  EXPECT_EQ(buffer.get(), only);
  loop.return_buffer(std::move(buffer), Loop::kBuffer);
  ASSERT_EQ(::send(pair[0], "more", 4, 0), 4);
  loop.run();
  EXPECT_EQ(status, Stream::Status::ok);
  EXPECT_EQ(stream.received(), "more");
  ::close(pair[0]);
}

TEST(Stream, ADeadlineThatWasSetWhileNobodyWaitedIsNotThatOfTheNextWait) {
  std::array<int, 2> pair;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
  const test::FastClock clock;
  Loop loop(clock);
  Stream stream(loop, pair[1]);
  stream.set_read_timeout(std::chrono::seconds{5});
  Stream::Status status = Stream::Status::aborted;
  spawn(wait_for_more(stream, status), [&] { loop.stop(); });
  Deadlines::Entry late{[&] { ::send(pair[0], "more", 4, 0); }};
  loop.deadlines().arm(late, std::chrono::seconds{20});
  loop.run();
  EXPECT_EQ(status, Stream::Status::ok);
  ::close(pair[0]);
}

TEST(Stream, SaysThatThePeerHasLeftThoughWhoReadsGotBytesWithIt) {
  std::array<int, 2> pair;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
  const test::FastClock clock;
  Loop loop(clock);
  Stream stream(loop, pair[1]);
  int told = 0;
  stream.on_event([&] { ++told; });
  Stream::Status status = Stream::Status::aborted;
  spawn(wait_for_more(stream, status), [&] { loop.stop(); });
  ASSERT_EQ(::send(pair[0], "last", 4, 0), 4);
  ::close(pair[0]);
  loop.run();
  EXPECT_EQ(status, Stream::Status::ok);
  EXPECT_EQ(stream.received(), "last");
  EXPECT_TRUE(stream.peer_left());
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace weir::http
