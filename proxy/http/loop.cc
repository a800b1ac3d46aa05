#include "proxy/http/loop.h"

#include <array>
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

std::unique_ptr<char[]> Loop::take_buffer(std::size_t capacity) {
  Buffers& spare = this->spare(capacity);
  if (spare.empty()) return std::make_unique_for_overwrite<char[]>(capacity);
  auto buffer = std::move(spare.back());
  spare.pop_back();
  return buffer;
}

void Loop::return_buffer(std::unique_ptr<char[]> buffer, std::size_t capacity) {
  Buffers& spare = this->spare(capacity);
  if (spare.size() < kSpareBytes / capacity) spare.push_back(std::move(buffer));
}

void Wakeup::wake() {
  if (!waiter_) return;
  loop_.post([waiter = std::exchange(waiter_, nullptr)] { waiter.resume(); });
}

void Beside::start(Task<void> task) {
  running_ = true;
  spawn(std::move(task), [this] {
    running_ = false;
    over_.wake();
  });
}

Task<void> Beside::join() {
  while (running_) co_await over_.wait();
}

}  // namespace weir::http
