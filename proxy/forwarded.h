#pragma once

// Who a request comes from: the peer of the connection or, where that is a proxy we trust, whom it
// names in X-Forwarded-For. Values and pure functions; TrustedProxies is constant once built and
// may be read by any thread.

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/field.h"

namespace weir {

// An IPv4 or IPv6 address. IPv4 is held as the IPv6 address it maps to, so that both spellings are
// equal and a client on a dual-stack socket is one client.
class Address {
 public:
  using V4 = std::array<std::uint8_t, 4>;
  using V6 = std::array<std::uint8_t, 16>;

  constexpr Address() = default;  // `::`
  constexpr explicit Address(const V6& bytes) : bytes_(bytes) {}
  constexpr explicit Address(const V4& b)
      : bytes_{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, b[0], b[1], b[2], b[3]} {}

  // Without brackets, port or zone.
  static std::optional<Address> parse(std::string_view text);

  const V6& bytes() const { return bytes_; }
  bool is_v4() const;
  Address prefix(int bits) const;  // the first `bits` of 128, the others zero
  void append_to(std::string& out) const;
  std::string text() const;

  friend auto operator<=>(const Address&, const Address&) = default;

 private:
  V6 bytes_{};
};

// A range of addresses. IPv4 ranges hold IPv4 addresses only, and `::/0` holds no IPv4.
class Cidr {
 public:
  // "10.0.0.0/8", "2001:db8::/32", or one address. Bits beyond the prefix are ignored.
  static std::optional<Cidr> parse(std::string_view text);

  bool contains(const Address& address) const;

 private:
  Cidr(Address network, int bits) : network_(network), bits_(bits) {}

  Address network_;
  int bits_;  // of 128
};

class TrustedProxies {
 public:
  TrustedProxies() = default;  // trusts nobody
  // Throws std::invalid_argument that names the first entry that is no CIDR.
  explicit TrustedProxies(std::span<const std::string> cidrs);

  bool contains(const Address& address) const;

  // The peer, unless it is trusted; then the first untrusted address in all X-Forwarded-For fields
  // taken as one list, from right to left; the leftmost if all are trusted. An entry that is no
  // address ends the walk at the one before it, as does the 32nd: what stands further left was
  // written by nobody we trust. Allocates nothing.
  Address client_address(const Address& peer, std::span<const http::Field> fields) const;

 private:
  std::vector<Cidr> trusted_;
};

}  // namespace weir
