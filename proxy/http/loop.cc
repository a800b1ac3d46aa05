#include "proxy/http/loop.h"

#include <array>
#include <asio/co_spawn.hpp>
#include <ctime>

namespace weir::http {

Loop::Loop(const Clock& clock) : clock_(clock), deadlines_(clock.steady_now()) { tick(); }

void Loop::run() { context_.run(); }

void Loop::stop() { context_.stop(); }

void Loop::tick() {
  timer_.expires_after(Deadlines::kTick);
  timer_.async_wait([this](std::error_code error) {
    if (error) return;
    deadlines_.advance(clock_.steady_now());
    tick();
  });
}

std::string_view Loop::http_date() {
  if (deadlines_.now() >= date_until_) {
    const std::time_t now = std::chrono::system_clock::to_time_t(clock_.wall_now());
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::array<char, 40> text;
    date_.assign(text.data(),
                 std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc));
    date_until_ = deadlines_.now() + std::chrono::milliseconds{500};
  }
  return date_;
}

Task<void> Wakeup::wait() {
  return asio::async_initiate<const asio::use_awaitable_t<Executor>, void()>(
      [this](Handler handler) { handler_.emplace(std::move(handler)); }, use_task);
}

void Wakeup::wake_now() {
  if (!handler_) return;
  Handler handler = std::move(*handler_);
  handler_.reset();
  std::move(handler)();
}

void Wakeup::wake() {
  if (!handler_) return;
  asio::post(loop_.executor(), std::move(*handler_));
  handler_.reset();
}

void Beside::start(Task<void> task) {
  running_ = true;
  asio::co_spawn(loop_.executor(), std::move(task), [this](std::exception_ptr) {
    running_ = false;
    over_.wake();
  });
}

Task<void> Beside::join() {
  while (running_) co_await over_.wait();
}

}  // namespace weir::http
