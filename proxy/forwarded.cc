#include "proxy/forwarded.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <ranges>
#include <stdexcept>
#include <system_error>

namespace weir {
namespace {

constexpr int most_entries = 32;
constexpr int v4_offset = 96;  // where the IPv4 address begins in the one it maps to

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// An entry of X-Forwarded-For: some proxies add the port, which for IPv6 takes brackets.
std::optional<Address> parse_entry(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return std::nullopt;
    if (bracket + 1 < text.size() && text[bracket + 1] != ':') return std::nullopt;
    text = text.substr(1, bracket - 1);
  } else if (colon != std::string_view::npos &&
             text.find(':', colon + 1) == std::string_view::npos) {
    text = text.substr(0, colon);
  }
  return Address::parse(text);
}

}  // namespace

std::optional<Address> Address::parse(std::string_view text) {
  char terminated[INET6_ADDRSTRLEN];
  // inet_pton would stop at a NUL in the text and take what is in front of it for all of it.
  if (text.size() >= sizeof terminated || text.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  *std::ranges::copy(text, terminated).out = '\0';
  if (V4 v4; inet_pton(AF_INET, terminated, v4.data()) == 1) return Address(v4);
  if (V6 v6; inet_pton(AF_INET6, terminated, v6.data()) == 1) return Address(v6);
  return std::nullopt;
}

bool Address::is_v4() const {
  static constexpr V6 mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(bytes_.begin(), bytes_.begin() + v4_offset / 8, mapped.begin());
}

Address Address::prefix(int bits) const {
  Address result = *this;
  for (int i = 0; i < 16; ++i) {
    const int kept = std::clamp(bits - 8 * i, 0, 8);
    result.bytes_[i] &= static_cast<std::uint8_t>(0xff00 >> kept);
  }
  return result;
}

void Address::append_to(std::string& out) const {
  char buffer[INET6_ADDRSTRLEN];
  const bool v4 = is_v4();
  inet_ntop(v4 ? AF_INET : AF_INET6, bytes_.data() + (v4 ? v4_offset / 8 : 0), buffer,
            sizeof buffer);
  out += buffer;
}

std::string Address::text() const {
  std::string result;
  append_to(result);
  return result;
}

std::optional<Cidr> Cidr::parse(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string_view address_text = text.substr(0, slash);
  const auto address = Address::parse(address_text);
  if (!address) return std::nullopt;
  if (slash == text.size()) return Cidr(*address, 128);

  // `::ffff:10.0.0.0/104` counts its bits as IPv6 does, `10.0.0.0/8` as IPv4.
  const int offset = address_text.find(':') == std::string_view::npos ? v4_offset : 0;
  const std::string_view length = text.substr(slash + 1);
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bits);
  if (error != std::errc{} || end != length.data() + length.size() || bits > 128u - offset) {
    return std::nullopt;
  }
  const int all_bits = static_cast<int>(bits) + offset;
  return Cidr(address->prefix(all_bits), all_bits);
}

bool Cidr::contains(const Address& address) const {
  return address.is_v4() == network_.is_v4() && address.prefix(bits_) == network_;
}

TrustedProxies::TrustedProxies(std::span<const std::string> cidrs) {
  for (const std::string& text : cidrs) {
    const auto cidr = Cidr::parse(text);
    if (!cidr) throw std::invalid_argument("not an address or CIDR: " + text);
    trusted_.push_back(*cidr);
  }
}

bool TrustedProxies::contains(const Address& address) const {
  return std::ranges::any_of(trusted_, [&](const Cidr& cidr) { return cidr.contains(address); });
}

Address TrustedProxies::client_address(const Address& peer,
                                       std::span<const http::Field> fields) const {
  if (!contains(peer)) return peer;
  Address client = peer;
  int entries = 0;
  for (const http::Field& field : fields | std::views::reverse) {
    if (!http::equal_ignoring_case(field.name, "x-forwarded-for")) continue;
    std::string_view list = field.value;
    for (std::size_t comma = 0; comma != std::string_view::npos;) {
      comma = list.rfind(',');
      const auto entry = parse_entry(trimmed(list.substr(comma + 1)));  // npos + 1 is the front
      if (!entry) return client;
      client = *entry;
      if (++entries == most_entries || !contains(client)) return client;
      list = list.substr(0, comma);
    }
  }
  return client;
}

}  // namespace weir
