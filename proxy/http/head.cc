#include "proxy/http/head.h"

#include <llhttp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace weir::http {
namespace {

// More than any sender has a reason for, empty ones counted. Each is compared with each field.
constexpr std::ptrdiff_t kMaxConnectionOptions = 32;
// What a message's head takes up at most, but for few of them.
constexpr std::size_t kUsualBytes = 4 * 1024, kUsualFields = 32;

constexpr bool is_plain(unsigned char c) { return (c >= 0x20 && c != 0x7f) || c == '\t'; }

constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0; c < plain.size(); ++c) plain[c] = is_plain(static_cast<unsigned char>(c));
  return plain;
}();

constexpr std::uint64_t in_each_byte(unsigned char c) { return 0x0101010101010101u * c; }

// The first byte from `i` on that is not plain. Eight at a time: of the bits that mark bytes below
// a space and 0x7f, the lowest is right, whatever the subtraction borrowed above it.
std::size_t skip_plain(std::string_view text, std::size_t i) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t kHigh = in_each_byte(0x80);
  std::uint64_t eight;
  while (i + sizeof eight <= text.size()) {
    std::memcpy(&eight, text.data() + i, sizeof eight);
    const std::uint64_t deletes = eight ^ in_each_byte(0x7f);  // 0 where one was
    const std::uint64_t below_space = (eight - in_each_byte(0x20)) & ~eight;
    const std::uint64_t marks = (below_space | ((deletes - in_each_byte(1)) & ~deletes)) & kHigh;
    i += marks == 0 ? sizeof eight : static_cast<std::size_t>(std::countr_zero(marks)) / 8;
    if (marks == 0) continue;
    if (text[i] != '\t') return i;
    ++i;
  }
  while (i < text.size() && kPlain[static_cast<unsigned char>(text[i])]) ++i;
  return i;
}

// What the callbacks of one run of llhttp fill in.
struct Parse {
  Head* head;
  std::size_t max_fields;
  bool lists_options = false;  // in a Connection
  bool too_many_fields = false;
  bool nameless_field = false;
};

Parse& parse_of(llhttp_t* parser) { return *static_cast<Parse*>(parser->data); }

std::string_view trim(const char* at, std::size_t length) {
  while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t')) --length;
  return {at, length};
}

int on_url(llhttp_t* parser, const char* at, std::size_t length) {
  parse_of(parser).head->target = {at, length};
  return HPE_OK;
}

int on_status(llhttp_t* parser, const char* at, std::size_t length) {
  parse_of(parser).head->reason = {at, length};
  return HPE_OK;
}

int on_field(llhttp_t* parser, const char* at, std::size_t length) {
  Parse& parse = parse_of(parser);
  if (parse.head->fields.size() == parse.max_fields) {
    parse.too_many_fields = true;
    return HPE_USER;
  }
  if (length == 0) {
    parse.nameless_field = true;
    return HPE_USER;
  }
  const std::string_view name{at, length};
  parse.head->fields.push_back({name, {}, known_field(name)});
  return HPE_OK;
}

int on_value(llhttp_t* parser, const char* at, std::size_t length) {
  Parse& parse = parse_of(parser);
  Field& field = parse.head->fields.back();
  field.value = trim(at, length);
  if (field.known == Known::connection) parse.lists_options = true;
  return HPE_OK;
}

// Bodies are framed by us (framing.h): llhttp is to stop caring here.
int on_headers_complete(llhttp_t*) { return 1; }

const llhttp_settings_t& settings() {
  static const llhttp_settings_t kSettings = [] {
    llhttp_settings_t s;
    llhttp_settings_init(&s);
    s.on_url = on_url;
    s.on_status = on_status;
    s.on_header_field = on_field;
    s.on_header_value = on_value;
    s.on_headers_complete = on_headers_complete;
    return s;
  }();
  return kSettings;
}

// False: there are too many.
bool read_connection(Head& head) {
  ConnectionOptions& options = head.connection;
  std::ptrdiff_t count = 0;
  for (const Field& field : head.fields) {
    if (field.known != Known::connection) continue;
    count += 1 + std::ranges::count(field.value, ',');
    if (count > kMaxConnectionOptions) return false;
    any_element(field.value, [&](std::string_view option) {
      if (equal_ignoring_case(option, "close")) {
        options.close = true;
      } else if (equal_ignoring_case(option, "keep-alive")) {
        options.keep_alive = true;
      } else if (equal_ignoring_case(option, "upgrade")) {
        options.upgrade = true;
      } else {
        options.fields.push_back(option);
      }
      return false;
    });
  }
  return true;
}

}  // namespace

const Field* Head::find(Known known) const {
  for (const Field& field : fields) {
    if (field.known == known) return &field;
  }
  return nullptr;
}

void Head::release_large() {
  if (bytes_.capacity() <= kUsualBytes && fields.capacity() <= kUsualFields) return;
  method = target = reason = {};
  std::string{}.swap(bytes_);
  std::vector<Field>{}.swap(fields);
}

std::size_t Head::count(Known known) const {
  std::size_t n = 0;
  for (const Field& field : fields) n += field.known == known;
  return n;
}

HeadReader::Result HeadReader::read(std::string_view received, Head& head) {
  Result scanned = scan(received);
  if (scanned.state != State::done) return scanned;
  scanned_ = line_start_ = lines_ = 0;
  Result parsed = parse(received.substr(0, scanned.consumed), head);
  parsed.consumed = scanned.consumed;
  return parsed;
}

// Walks whole lines, so that nothing but CR LF ends one and no line continues the one before.
HeadReader::Result HeadReader::scan(std::string_view received) {
  std::size_t i = scanned_;
  while (i < received.size()) {
    const char c = received[i];
    if (i == line_start_ && lines_ > 0 && (c == ' ' || c == '\t')) {
      return {State::malformed, 0, "a field is folded onto a second line"};
    }
    if (kPlain[static_cast<unsigned char>(c)]) {
      i = skip_plain(received, i + 1);
      continue;
    }
    if (c == '\n') return {State::malformed, 0, "a line ends without CR"};
    if (c != '\r') return {State::malformed, 0, "a control byte in the head"};
    if (i + 1 == received.size()) break;
    if (received[i + 1] != '\n') return {State::malformed, 0, "a bare CR in the head"};
    // One empty line before the start line is forgiven: RFC 9112, section 2.2.
    const bool empty = i == line_start_;
    i += 2;
    if (empty && line_start_ > 0) {
      if (lines_ == 0) return {State::malformed, 0, "empty lines before the start line"};
      if (i > limits_.header_bytes) return {State::too_large};
      return {State::done, i};
    }
    line_start_ = i;
    if (!empty) ++lines_;
  }
  scanned_ = i;
  if (lines_ == 0 && received.size() > limits_.target_bytes + 64 && kind_ == Kind::request) {
    return {State::target_too_long};
  }
  if (received.size() > limits_.header_bytes) return {State::too_large};
  return {State::more};
}

HeadReader::Result HeadReader::parse(std::string_view bytes, Head& head) const {
  head.bytes_.assign(bytes);
  head.fields.clear();
  head.method = head.target = head.reason = {};
  head.connection.close = head.connection.keep_alive = head.connection.upgrade = false;
  head.connection.fields.clear();

  llhttp_t parser;
  llhttp_init(&parser, kind_ == Kind::request ? HTTP_REQUEST : HTTP_RESPONSE, &settings());
  Parse parse{&head, limits_.header_fields};
  parser.data = &parse;
  const llhttp_errno_t error = llhttp_execute(&parser, head.bytes_.data(), head.bytes_.size());
  if (parse.too_many_fields) return {State::too_large};
  if (parse.nameless_field) return {State::malformed, 0, "a field without a name"};
  if (error != HPE_OK && error != HPE_PAUSED_UPGRADE) {
    return {State::malformed, 0, llhttp_get_error_reason(&parser)};
  }
  if (parser.http_major != 1 || parser.http_minor > 1) {
    return {State::malformed, 0, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  }
  head.minor_version = parser.http_minor;
  if (parse.lists_options && !read_connection(head)) {
    return {State::malformed, 0, "too many options in Connection"};
  }
  if (kind_ == Kind::response) {
    head.status = parser.status_code;
    if (head.status < 100 || head.status > 599) return {State::malformed, 0, "no such status"};
    return {State::done};
  }
  if (head.target.size() > limits_.target_bytes) return {State::target_too_long};
  std::string_view line = head.bytes_;
  if (line.starts_with("\r\n")) line.remove_prefix(2);
  line = line.substr(0, line.find('\r'));
  head.method = line.substr(0, line.find(' '));
  // llhttp forgives further spaces between the parts; another parser may not.
  constexpr std::string_view kVersion = "HTTP/1.";  // and a digit; llhttp knows RTSP too
  if (line.size() != head.method.size() + head.target.size() + kVersion.size() + 3 ||
      line.substr(line.size() - kVersion.size() - 1, kVersion.size()) != kVersion) {
    return {State::malformed, 0, "the request line is not method, target and HTTP/1.x"};
  }
  return {State::done};
}

}  // namespace weir::http
