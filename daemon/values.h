#pragma once

// How each kind of value is written in a configuration. A kind can say what it wants, read a text
// into a value and show a value so that reading it again gives the same; a reader or a writer of
// any format needs no more. Plain values; nothing here knows YAML or JSON.
//   std::string wanted() const;                    "a whole number from 1 to 10"
//   Problem read(const Scalar&, T& value) const;   leaves the value alone if there is a problem
//   Shown show(const T& value) const;

#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "proxy/rule.h"
#include "proxy/upstream_options.h"

namespace weir {

struct Scalar {
  std::string_view text;
  bool quoted = false;  // "5" is text, 5 a number
};

using Shown = std::variant<bool, std::int64_t, double, std::string>;
using Problem = std::string;  // what is wrong; empty: nothing

struct Flag {
  std::string wanted() const { return "true or false"; }
  Problem read(const Scalar& scalar, bool& value) const;
  Shown show(bool value) const { return value; }
};

struct Integer {
  std::int64_t min, max;

  std::string wanted() const;
  template <std::integral T>
  Problem read(const Scalar& scalar, T& value) const {
    std::int64_t number = static_cast<std::int64_t>(value);
    Problem problem = read_number(scalar, number);
    value = static_cast<T>(number);
    return problem;
  }
  Shown show(std::int64_t value) const { return value; }

 private:
  Problem read_number(const Scalar& scalar, std::int64_t& value) const;
};

struct Number {
  enum class Ends { included, excluded };

  double min, max;
  Ends ends = Ends::included;

  std::string wanted() const;
  Problem read(const Scalar& scalar, double& value) const;
  Shown show(double value) const { return value; }
};

// `500ms`, `30s`, `0.5s`, `1m`, `24h`; to the millisecond.
struct Duration {
  std::chrono::milliseconds min, max;

  std::string wanted() const;
  Problem read(const Scalar& scalar, std::chrono::milliseconds& value) const;
  Shown show(std::chrono::milliseconds value) const;
};

struct WholeSeconds {
  std::chrono::seconds min, max;

  std::string wanted() const;
  Problem read(const Scalar& scalar, std::chrono::seconds& value) const;
  Shown show(std::chrono::seconds value) const;
};

// `forever`, which is no value, or a duration.
struct Patience {
  std::chrono::milliseconds max;

  std::string wanted() const;
  Problem read(const Scalar& scalar, std::optional<std::chrono::milliseconds>& value) const;
  Shown show(const std::optional<std::chrono::milliseconds>& value) const;
};

// The names of an enum's values, in their order.
class Choice {
 public:
  Choice(std::initializer_list<std::string_view> names) : names_(names) {}

  std::string wanted() const;
  template <typename Enum>
    requires std::is_enum_v<Enum>
  Problem read(const Scalar& scalar, Enum& value) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] != scalar.text) continue;
      value = static_cast<Enum>(i);
      return {};
    }
    return unknown(scalar);
  }
  template <typename Enum>
  Shown show(Enum value) const {
    return std::string(names_.at(static_cast<std::size_t>(value)));
  }

 private:
  Problem unknown(const Scalar& scalar) const;
  std::vector<std::string_view> names_;
};

// Text that passes a check, which may also bring it into the one form that is kept.
struct Text {
  Problem (*check)(std::string& text);

  std::string wanted() const { return "text"; }
  Problem read(const Scalar& scalar, std::string& value) const;
  Shown show(const std::string& value) const { return value; }
};

// `127.0.0.1:80`, `[::1]:80`, `localhost:80`.
struct HostPort {
  std::string wanted() const { return "an address as in 127.0.0.1:4040"; }
  Problem read(const Scalar& scalar, ServerAddress& value) const;
  Shown show(const ServerAddress& value) const;
};

// `http://host[:port][/]`.
struct ServerUrl {
  std::string wanted() const { return "a URL as in http://127.0.0.1:9000"; }
  Problem read(const Scalar& scalar, ServerAddress& value) const;
  Shown show(const ServerAddress& value) const;
};

// `client_ip`, `header:NAME` or `segment:N`.
struct WhoAsks {
  std::string wanted() const { return "client_ip, header:NAME or segment:N"; }
  Problem read(const Scalar& scalar, TenantSource& value) const;
  Shown show(const TenantSource& value) const;
};

}  // namespace weir
