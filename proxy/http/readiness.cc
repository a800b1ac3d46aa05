#include "proxy/http/readiness.h"

#include <cerrno>
#include <system_error>

namespace weir::http {
namespace {

int make_set() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (set < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return set;
}

}  // namespace

void Readiness::Entry::add(Readiness& set, int descriptor) {
  set_ = &set;
  descriptor_ = descriptor;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = this;
  ::epoll_ctl(set.set_.native_handle(), EPOLL_CTL_ADD, descriptor, &event);
}

void Readiness::Entry::remove() {
  if (!set_) return;
  ::epoll_ctl(set_->set_.native_handle(), EPOLL_CTL_DEL, descriptor_, nullptr);
  // What the batch still holds for this entry must not reach it any more.
  for (int i = set_->next_; i < set_->count_; ++i) {
    epoll_event& event = set_->batch_[static_cast<std::size_t>(i)];
    if (event.data.ptr == this) event.data.ptr = nullptr;
  }
  set_ = nullptr;
}

Readiness::Readiness(asio::io_context& context) : set_(context, make_set()) { wait(); }

void Readiness::wait() {
  set_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    if (error) return;
    dispatch();
    wait();
  });
}

void Readiness::dispatch() {
  count_ = ::epoll_wait(set_.native_handle(), batch_.data(), kBatch, 0);
  for (next_ = 0; next_ < count_;) {
    const epoll_event& event = batch_[static_cast<std::size_t>(next_++)];
    const auto* entry = static_cast<const Entry*>(event.data.ptr);
    if (entry) entry->ready_(entry->owner_, event.events);
  }
  next_ = count_ = 0;
}

}  // namespace weir::http
