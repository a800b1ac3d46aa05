#pragma once

// The keys that replicas share, and their values: the only place that builds or parses them. What a
// person sees with `etcdctl get --prefix` is described in the README.
//
//   <prefix>/claims/<rule>:<resource>@<window>/<replica>-<seq>   {"units":1,"at":"…"}
//                                                        or, in part given back: …,"of":47}
//   <prefix>/replicas/<replica> {"address":…,"version":…,"since":…}
//   <prefix>/cooldowns/<upstream>/<project or *>/<429 or 503>
//                                                  {"failures":3,"last":…,"not_before":…}
//
// <resource>, <project> and <replica> are percent-encoded but for unreserved characters and `/`, so
// `@` ends the resource and no resource's keys can lie among another's. <window> is the start of an
// aligned window, `sliding/<start of a slice>`, or `in_flight`. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "coordination/cooldown_record.h"
#include "coordination/limit.h"
#include "coordination/store.h"
#include "coordination/window.h"

namespace weir {

struct ClaimKey {
  std::string rule, resource;
  std::string window;  // as in the key
  std::string replica;
  std::uint64_t seq = 0;
};

// What a replica says of itself.
struct ReplicaFacts {
  std::string name;
  std::string address, version;
  std::string since;  // RFC 3339
};

class Keyspace {
 public:
  Keyspace(const std::string& prefix, std::string_view replica);

  // All claims of all resources.
  std::string all_claims() const { return claims_; }
  // What one limit is counted over, with a final `/`: the claims of an aligned window, or of a mode
  // that knows none.
  std::string claims_of(std::string_view rule, std::string_view resource, Mode mode,
                        const Window& window) const;
  // One claim of this replica below what claims_of() gave; `slice` matters only to sliding.
  std::string claim(std::string_view claims, Mode mode, WallTime slice, std::uint64_t seq) const;

  // Nothing: not a claim of ours.
  std::optional<ClaimKey> parse_claim(std::string_view key) const;
  // The replica that a claim belongs to, encoded, for comparing.
  static std::string_view owner_of(std::string_view key);
  const std::string& owner() const { return replica_; }
  static std::optional<std::uint64_t> seq_of(std::string_view key);

  // All replicas, and this one.
  const std::string& all_replicas() const { return replicas_; }
  std::string own_replica() const { return replicas_ + replica_; }
  // Nothing: not a replica. What its value does not tell stays empty.
  std::optional<ReplicaFacts> parse_replica(std::string_view key, std::string_view value) const;

  // All cooldowns of all upstreams, and one.
  const std::string& all_cooldowns() const { return cooldowns_; }
  std::string cooldown(const CooldownKey& key) const;
  // Nothing: not a cooldown.
  std::optional<CooldownKey> parse_cooldown(std::string_view key) const;

 private:
  const std::string claims_;     // "/weir/v1/claims/"
  const std::string replicas_;   // "/weir/v1/replicas/"
  const std::string cooldowns_;  // "/weir/v1/cooldowns/"
  const std::string replica_;    // encoded
};

std::string percent_encode(std::string_view text);
std::optional<std::string> percent_decode(std::string_view text);

// To the millisecond, and never an earlier not_before than it is.
std::string cooldown_value(const CooldownRecord& record);
// Nothing: it cannot be read.
std::optional<CooldownRecord> read_cooldown(std::string_view value);
std::string replica_value(const ReplicaFacts& facts);
// `of`: how many it had when it was last claimed, where some have been given back since; 0: none.
std::string claim_value(std::int64_t units, WallTime at, std::int64_t of = 0);
bool is_shrunk(std::string_view claim_value);
// What cannot be read counts as one unit: better one too few than one too many.
std::int64_t claimed_units(std::string_view value);

}  // namespace weir
