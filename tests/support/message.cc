#include "tests/support/message.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <ostream>

namespace weir::test {
namespace {

constexpr std::string_view crlf = "\r\n";

bool is_token(std::string_view text) {
  static constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           marks.find(c) != std::string_view::npos;
  });
}

bool has_control_bytes(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  });
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Field parse_field(std::string_view line, std::string_view raw) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) ||
      has_control_bytes(line)) {
    throw MalformedMessage("bad field line '" + std::string(line) + "' in: " + std::string(raw));
  }
  return {std::string(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1)))};
}

std::size_t parse_number(std::string_view text, int base, std::string_view what) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw MalformedMessage("bad " + std::string(what) + " '" + std::string(text) + "'");
  }
  return value;
}

Body read_chunks(Socket& socket) {
  Body body{.bytes = {}, .framing = Framing::chunked, .complete = false, .trailers = {}};
  for (;;) {
    const std::string line = socket.read_through(crlf);
    if (!line.ends_with(crlf)) return body;
    const std::size_t size =
        parse_number(std::string_view(line).substr(0, line.size() - 2), 16, "chunk size");
    if (size == 0) break;
    body.bytes += socket.read_exactly(size);
    const std::string end = socket.read_exactly(2);
    if (end.size() < 2) return body;
    if (end != crlf) throw MalformedMessage("a chunk does not end with CRLF");
  }
  for (;;) {
    const std::string line = socket.read_through(crlf);
    if (!line.ends_with(crlf)) return body;
    if (line == crlf) break;
    body.trailers += line;
  }
  body.complete = true;
  return body;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::vector<std::string> Fields::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const Field& field : fields_) {
    if (same_name(field.name, name)) values.push_back(field.value);
  }
  return values;
}

std::size_t Fields::count(std::string_view name) const { return all(name).size(); }

std::string Fields::get(std::string_view name) const {
  std::string joined;
  for (const std::string& value : all(name)) joined += (joined.empty() ? "" : ", ") + value;
  return joined;
}

std::ostream& operator<<(std::ostream& out, Framing framing) {
  constexpr std::array names{"none", "length", "chunked", "until_close"};
  return out << names[static_cast<std::size_t>(framing)];
}

std::optional<Head> read_head(Socket& socket) {
  Head head;
  head.raw = socket.read_through("\r\n\r\n");
  if (head.raw.empty()) return std::nullopt;
  if (!head.raw.ends_with("\r\n\r\n"))
    throw MalformedMessage("the head was cut: '" + head.raw + "'");
  std::string_view rest = std::string_view(head.raw).substr(0, head.raw.size() - 2);
  for (bool first = true; !rest.empty(); first = false) {
    const auto end = rest.find(crlf);
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + crlf.size());
    if (first) {
      if (has_control_bytes(line)) throw MalformedMessage("bad first line in: " + head.raw);
      head.start_line = line;
    } else {
      head.fields.add(parse_field(line, head.raw));
    }
  }
  return head;
}

Framing framing_of(const Fields& fields, Framing otherwise) {
  const auto codings = fields.all("Transfer-Encoding");
  const auto lengths = fields.all("Content-Length");
  if (codings.size() + lengths.size() > 1) throw MalformedMessage("a body framed more than once");
  if (!codings.empty()) {
    if (codings[0] != "chunked") throw MalformedMessage("Transfer-Encoding: " + codings[0]);
    return Framing::chunked;
  }
  return lengths.empty() ? otherwise : Framing::length;
}

Body read_body(Socket& socket, const Fields& fields, Framing framing) {
  switch (framing) {
    case Framing::none:
      return {.bytes = {}, .framing = framing, .complete = true, .trailers = {}};
    case Framing::length: {
      const std::size_t size = parse_number(fields.get("Content-Length"), 10, "Content-Length");
      std::string bytes = socket.read_exactly(size);
      const bool complete = bytes.size() == size;
      return {.bytes = std::move(bytes), .framing = framing, .complete = complete, .trailers = {}};
    }
    case Framing::chunked:
      return read_chunks(socket);
    case Framing::until_close: {
      std::string bytes = socket.read_to_end();
      const bool complete = socket.ending() == Ending::fin;
      return {.bytes = std::move(bytes), .framing = framing, .complete = complete, .trailers = {}};
    }
  }
  throw std::logic_error("no such framing");
}

std::string lines(std::initializer_list<std::string_view> of_head) {
  std::string text;
  for (std::string_view line : of_head) text.append(line).append(crlf);
  return text.append(crlf);
}

std::string chunk(std::string_view bytes) {
  std::array<char, 16> size;
  const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
  return std::string(size.data(), end).append(crlf).append(bytes).append(crlf);
}

std::string payload(std::size_t size, unsigned seed) {
  // xorshift: quick, and no two stretches of it look alike.
  std::string bytes(size, '\0');
  std::uint64_t state = 0x9e3779b97f4a7c15u * (seed + 1);
  for (char& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state >> 32);
  }
  return bytes;
}

}  // namespace weir::test
