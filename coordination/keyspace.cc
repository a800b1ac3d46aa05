#include "coordination/keyspace.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

namespace weir {
namespace {

constexpr std::string_view kSliding = "sliding/";
constexpr std::string_view kInFlight = "in_flight";
constexpr char kHex[] = "0123456789ABCDEF";

bool stays(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~' || c == '/';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A reading of a resource goes through all its claims, so what we wrote needs no parser.
constexpr std::string_view kUnits = "{\"units\":", kAt = ",\"at\":\"", kOf = ",\"of\":";

std::optional<std::int64_t> units_as_we_write_them(std::string_view value) {
  if (!value.starts_with(kUnits)) return std::nullopt;
  std::int64_t units = 0;
  const char* const end = value.data() + value.size();
  const auto [behind, error] = std::from_chars(value.data() + kUnits.size(), end, units);
  if (error != std::errc{} || !std::string_view(behind, end).starts_with(kAt)) return std::nullopt;
  return units;
}

// The last segment: <replica>-<seq>.
std::string_view last_segment(std::string_view key) { return key.substr(key.rfind('/') + 1); }

}  // namespace

std::string percent_encode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (stays(c)) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return out;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

// A replica's name never holds a `/` as it stands, so that the last segment is <replica>-<seq>.
Keyspace::Keyspace(const std::string& prefix, std::string_view replica)
    : claims_(prefix + "/claims/"),
      replicas_(prefix + "/replicas/"),
      cooldowns_(prefix + "/cooldowns/"),
      replica_([&] {
        std::string encoded;
        for (const char c : replica) {
          encoded += c == '/' ? std::string{"%2F"} : percent_encode({&c, 1});
        }
        return encoded;
      }()) {}

std::string Keyspace::claims_of(std::string_view rule, std::string_view resource, Mode mode,
                                const Window& window) const {
  std::string key = claims_;
  key.append(rule).append(":").append(percent_encode(resource)).append("@");
  switch (mode) {
    case Mode::started:
    case Mode::until_done:
      return key.append(utc_text(window.start)).append("/");
    case Mode::sliding:
      return key.append(kSliding);
    case Mode::in_flight:
      return key.append(kInFlight).append("/");
  }
  return key;
}

std::string Keyspace::claim(std::string_view claims, Mode mode, WallTime slice,
                            std::uint64_t seq) const {
  std::string key{claims};
  if (mode == Mode::sliding) key.append(utc_text(slice)).append("/");
  return key.append(replica_).append("-").append(std::to_string(seq));
}

std::optional<ClaimKey> Keyspace::parse_claim(std::string_view key) const {
  if (!key.starts_with(claims_)) return std::nullopt;
  std::string_view rest = key.substr(claims_.size());
  const std::size_t colon = rest.find(':');
  const std::size_t at = rest.find('@');
  const std::size_t slash = rest.rfind('/');
  if (colon == rest.npos || at == rest.npos || slash == rest.npos || colon > at || slash < at) {
    return std::nullopt;
  }
  ClaimKey parsed;
  parsed.rule = rest.substr(0, colon);
  parsed.window = rest.substr(at + 1, slash - at - 1);
  auto resource = percent_decode(rest.substr(colon + 1, at - colon - 1));
  auto replica = percent_decode(owner_of(key));
  const auto seq = seq_of(key);
  if (!resource || !replica || !seq) return std::nullopt;
  parsed.resource = *std::move(resource);
  parsed.replica = *std::move(replica);
  parsed.seq = *seq;
  return parsed;
}

std::string_view Keyspace::owner_of(std::string_view key) {
  const std::string_view last = last_segment(key);
  const std::size_t dash = last.rfind('-');
  return dash == last.npos ? std::string_view{} : last.substr(0, dash);
}

std::optional<std::uint64_t> Keyspace::seq_of(std::string_view key) {
  const std::string_view last = last_segment(key);
  const std::size_t dash = last.rfind('-');
  if (dash == last.npos) return std::nullopt;
  const char* const end = last.data() + last.size();
  std::uint64_t seq = 0;
  const auto result = std::from_chars(last.data() + dash + 1, end, seq);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return seq;
}

std::optional<ReplicaFacts> Keyspace::parse_replica(std::string_view key,
                                                    std::string_view value) const {
  if (!key.starts_with(replicas_)) return std::nullopt;
  auto name = percent_decode(key.substr(replicas_.size()));
  if (!name || name->empty()) return std::nullopt;
  ReplicaFacts facts{.name = *std::move(name), .address = {}, .version = {}, .since = {}};
  const auto json = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return facts;
  const auto text = [&json](const char* field) {
    const auto found = json.find(field);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string{};
  };
  facts.address = text("address");
  facts.version = text("version");
  facts.since = text("since");
  return facts;
}

// A project may hold a `/`, an upstream's name none.
std::string Keyspace::cooldown(const CooldownKey& key) const {
  const std::string project = key.project.empty() ? "*" : percent_encode(key.project);
  return cooldowns_ + key.upstream + "/" + project + "/" + std::to_string(key.status);
}

std::optional<CooldownKey> Keyspace::parse_cooldown(std::string_view key) const {
  if (!key.starts_with(cooldowns_)) return std::nullopt;
  const std::string_view rest = key.substr(cooldowns_.size());
  const std::size_t first = rest.find('/');
  const std::size_t last = rest.rfind('/');
  if (first == rest.npos || first == last) return std::nullopt;
  const std::string_view status = rest.substr(last + 1);
  if (status != "429" && status != "503") return std::nullopt;
  CooldownKey parsed{std::string{rest.substr(0, first)}, {}, status == "429" ? 429 : 503};
  const std::string_view project = rest.substr(first + 1, last - first - 1);
  if (project == "*") return parsed;
  auto decoded = percent_decode(project);
  if (!decoded || decoded->empty()) return std::nullopt;
  parsed.project = *std::move(decoded);
  return parsed;
}

std::string cooldown_value(const CooldownRecord& record) {
  const auto not_before = std::chrono::ceil<std::chrono::milliseconds>(record.not_before);
  return "{\"failures\":" + std::to_string(record.failures) + ",\"last\":\"" +
         utc_text_ms(record.last) + "\",\"not_before\":\"" + utc_text_ms(not_before) + "\"}";
}

std::optional<CooldownRecord> read_cooldown(std::string_view value) {
  const auto json = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto instant = [&json](const char* field) -> std::optional<WallTime> {
    const auto found = json.find(field);
    if (found == json.end() || !found->is_string()) return std::nullopt;
    return parse_utc(found->get_ref<const std::string&>());
  };
  const auto failures = json.find("failures");
  const auto last = instant("last"), not_before = instant("not_before");
  if (failures == json.end() || !failures->is_number_integer() || !last || !not_before) {
    return std::nullopt;
  }
  const auto count = failures->get<std::int64_t>();
  if (count < 1 || count > std::numeric_limits<int>::max()) return std::nullopt;
  return CooldownRecord{static_cast<int>(count), *last, *not_before};
}

std::string replica_value(const ReplicaFacts& facts) {
  const nlohmann::ordered_json json{
      {"address", facts.address}, {"version", facts.version}, {"since", facts.since}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string claim_value(std::int64_t units, WallTime at, std::int64_t of) {
  std::string value{kUnits};
  value.append(std::to_string(units)).append(kAt).append(utc_text_ms(at)).append("\"");
  if (of > 0) value.append(kOf).append(std::to_string(of));
  return value + "}";
}

bool is_shrunk(std::string_view claim_value) { return claim_value.find(kOf) != std::string::npos; }

std::int64_t claimed_units(std::string_view value) {
  std::optional<std::int64_t> units = units_as_we_write_them(value);
  if (!units) {  // put by hand
    const auto json = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("units") && json["units"].is_number_integer()) {
      units = json["units"].get<std::int64_t>();
    }
  }
  return units && *units >= 1 && *units <= 1'000'000'000 ? *units : 1;
}

}  // namespace weir
