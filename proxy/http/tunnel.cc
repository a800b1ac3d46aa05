#include "proxy/http/tunnel.h"

namespace weir::http {

Task<void> Tunnel::run() {
  last_moved_ = client_.loop().deadlines().now();
  beside_.start(copy(client_, server_));
  co_await copy(server_, client_);
  co_await beside_.join();
}

Task<void> Tunnel::copy(Stream& from, Stream& to) {
  for (;;) {
    if (from.size() > 0) {
      const std::size_t size = from.size();
      Pieces pieces;
      pieces.add(from.received());
      if (co_await to.write(pieces, idle_) != Stream::Status::ok) break;
      from.consume(size);
      last_moved_ = client_.loop().deadlines().now();
    }
    const Stream::Status status = co_await from.more(idle_);
    if (status == Stream::Status::ok) continue;
    if (status == Stream::Status::closed) co_return to.shutdown_send();
    // The other way may be busy.
    const auto quiet = client_.loop().deadlines().now() - last_moved_;
    if (status != Stream::Status::timed_out || quiet >= idle_) break;
  }
  from.abort();
  to.abort();
}

}  // namespace weir::http
