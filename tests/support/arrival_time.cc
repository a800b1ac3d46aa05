#include "tests/support/arrival_time.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

namespace weir::test {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

// The kernel's stamp is of the wall clock.
Instant on_steady_clock(const timespec& stamp) {
  const auto since_epoch = seconds{stamp.tv_sec} + nanoseconds{stamp.tv_nsec};
  const auto age = system_clock::now().time_since_epoch() - since_epoch;
  return steady_clock::now() - age;
}

}  // namespace

void note_arrivals(int fd) {
  const int on = 1;
  if (::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0) {
    throw std::system_error(errno, std::generic_category(), "SO_TIMESTAMPNS");
  }
}

ssize_t receive(int fd, char* to, std::size_t size, Instant& arrived) {
  iovec bytes{to, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = ::recvmsg(fd, &message, 0);
  if (count <= 0) return count;
  arrived = steady_clock::now();
  const cmsghdr* const told = CMSG_FIRSTHDR(&message);
  if (told && told->cmsg_level == SOL_SOCKET && told->cmsg_type == SCM_TIMESTAMPNS) {
    timespec stamp;
    std::memcpy(&stamp, CMSG_DATA(told), sizeof stamp);
    arrived = on_steady_clock(stamp);
  }
  return count;
}

}  // namespace weir::test
