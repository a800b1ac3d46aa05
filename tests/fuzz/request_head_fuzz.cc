// Any bytes at all into the reader of request heads and, behind a head that was taken, into its
// body's decoder. What is taken must keep the rules that everything after it relies on, and must
// not depend on how the bytes arrived.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "proxy/headers.h"
#include "proxy/http/framing.h"
#include "proxy/http/head.h"

namespace {

using weir::http::BodyDecoder;
using weir::http::Framing;
using weir::http::Head;
using weir::http::HeadReader;

constexpr weir::http::Limits kLimits{
    .header_bytes = 2048, .header_fields = 20, .target_bytes = 256, .connections = 1};

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_clean(std::string_view text) {
  for (char c : text) {
    if (c == '\r' || c == '\n' || c == '\0') return false;
  }
  return true;
}

void check_head(const Head& head) {
  require(!head.method.empty() && !head.target.empty());
  require(head.target.find(' ') == head.target.npos && is_clean(head.target));
  require(head.fields.size() <= kLimits.header_fields &&
          head.target.size() <= kLimits.target_bytes);
  for (const auto& field : head.fields) {
    require(!field.name.empty() && field.name.find_first_of(" \t:") == field.name.npos);
    require(is_clean(field.name) && is_clean(field.value));
  }
}

void check_body(const Framing& framing, std::string wire) {
  std::string copy = wire;
  BodyDecoder whole(framing), bytewise(framing);
  const auto piece = whole.decode(wire.data(), wire.size());
  std::string payload;
  std::size_t used = 0;
  while (used < copy.size() && !bytewise.done() && !bytewise.failed()) {
    payload += bytewise.decode(copy.data() + used, 1).payload;
    ++used;
  }
  require(whole.done() == bytewise.done() && whole.failed() == bytewise.failed());
  if (!whole.failed()) require(piece.payload == payload && piece.wire == used);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  HeadReader at_once(HeadReader::Kind::request, kLimits);
  HeadReader in_steps(HeadReader::Kind::request, kLimits);
  Head head, again;
  const auto result = at_once.read(bytes, head);

  // In three steps, or until it is refused.
  HeadReader::Result stepwise{HeadReader::State::more};
  for (std::size_t n : {size / 3, size / 2, size}) {
    if (stepwise.state == HeadReader::State::more)
      stepwise = in_steps.read(bytes.substr(0, n), again);
  }
  const bool taken = result.state == HeadReader::State::done;
  require(taken == (stepwise.state == HeadReader::State::done));
  if (!taken) return 0;
  require(result.consumed == stepwise.consumed && head.target == again.target);
  check_head(head);

  const Framing framing = weir::http::request_framing(head);
  if (framing.fault) return 0;
  check_body(framing, std::string{bytes.substr(result.consumed)});
  std::string out;
  weir::append_request_head(out,
                            {head, "/", "h", "::1", true, framing, weir::http::upgrade_of(head)});
  // What we send is one head, and reads the same to another strict reader.
  HeadReader next(HeadReader::Kind::request, {.header_bytes = 1 << 16, .header_fields = 100});
  const auto sent = next.read(out, again);
  require(sent.state == HeadReader::State::done && sent.consumed == out.size());
  const Framing kept = weir::http::request_framing(again);
  require(!kept.fault && kept.kind == framing.kind && kept.length == framing.length);
  return 0;
}
