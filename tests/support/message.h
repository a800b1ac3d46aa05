#pragma once

// HTTP/1.1 messages read from a Socket, strictly: what Weir sends, to either side, must be well
// formed, and anything else throws MalformedMessage. Shares no code with the product, which it
// judges.

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/socket.h"

namespace weir::test {

struct MalformedMessage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Field {
  std::string name;
  std::string value;
};

// In the order received. Names are looked up without regard to case.
class Fields {
 public:
  void add(Field field) { fields_.push_back(std::move(field)); }
  bool has(std::string_view name) const { return count(name) > 0; }
  std::size_t count(std::string_view name) const;
  // Values of that name, joined by ", "; empty if there is none.
  std::string get(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  const std::vector<Field>& in_order() const { return fields_; }

 private:
  std::vector<Field> fields_;
};

struct Head {
  std::string raw;  // as received, with the blank line
  std::string start_line;
  Fields fields;
};

// How the end of a body is told.
enum class Framing { none, length, chunked, until_close };
std::ostream& operator<<(std::ostream& out, Framing framing);

struct Body {
  std::string bytes;
  Framing framing = Framing::none;
  bool complete = false;  // whole by its own framing
  std::string trailers;   // as received; only behind chunks
};

// nullopt: the peer ended the connection before the first byte. Throws if it did so later.
std::optional<Head> read_head(Socket& socket);

// What the fields say; `otherwise` where they say nothing. Throws on any ambiguity.
Framing framing_of(const Fields& fields, Framing otherwise);
Body read_body(Socket& socket, const Fields& fields, Framing framing);

// The lines of a head with their ends, and the blank line that ends it.
std::string lines(std::initializer_list<std::string_view> of_head);
std::string chunk(std::string_view bytes);
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

bool same_name(std::string_view a, std::string_view b);
// Bytes that repeat nowhere near, the same on each call with the same seed.
std::string payload(std::size_t size, unsigned seed = 1);

}  // namespace weir::test
