#include "proxy/prospect.h"

#include <algorithm>

#include "coordination/window.h"

namespace weir {
namespace {

using http::Denial;
using std::chrono::milliseconds;
using What = Prospect::What;

Prospect refused(Denial why, milliseconds behind = milliseconds{0}) {
  return {.what = What::refuse, .reason = why, .patience = behind};
}

// The earliest that a unit can be there. Who is ahead takes those of the windows between.
std::optional<WallTime> unit_at(const UnitFacts& facts, const Usage& usage) {
  const Limit& limit = facts.limit;
  if (limit.mode == Mode::in_flight || limit.mode == Mode::until_done) return std::nullopt;
  if (!usage.full || !usage.more_at) return std::nullopt;
  if (limit.mode == Mode::sliding || limit.queue == Queue::fair) return usage.more_at;
  const auto windows =
      static_cast<std::int64_t>(usage.waiting) / std::max<std::int64_t>(1, facts.units);
  return *usage.more_at + windows * limit.window;
}

// What becomes of it when it asks for a unit.
Prospect at_the_line(const ProspectFacts& facts, const Instant& now) {
  const Limit& limit = facts.units.limit;
  const Usage usage = usage_of(facts.units, now.wall);
  if (usage.in_hand > 0 && usage.waiting == 0) return {.because = "a unit is in hand"};
  const bool store_down = facts.units.known ? facts.units.summary.state.store_down
                                            : !facts.units.claimed && facts.units.store_needed;
  if (facts.draining && (usage.full || store_down)) return refused(Denial::draining);
  if (store_down) return refused(Denial::store_unavailable);
  if (!usage.full && usage.waiting == 0) {
    if (facts.units.counted_here) return {.because = "a unit is free"};
    return {.what = What::claim};
  }
  if (usage.full && limit.wait == milliseconds{0}) return refused(Denial::limit);
  if (usage.full && facts.room_full) return refused(Denial::queue_full);
  return {.what = What::wait,
          .reason = Denial::limit,
          .not_before = unit_at(facts.units, usage),
          .ahead = usage.waiting};
}

// What becomes of it before its upstream's cooldown.
Prospect at_the_gate(const ProspectFacts& facts, const Instant& now) {
  const Cooldown::Verdict& verdict = facts.cooldown;
  if (verdict.kind == Cooldown::Verdict::Kind::go) return {};
  if (verdict.kind == Cooldown::Verdict::Kind::draining) return refused(Denial::draining);
  if (facts.room_full) return refused(Denial::queue_full);
  if (facts.units.limit.wait == milliseconds{0}) return refused(Denial::cooldown);
  Prospect held{.what = What::wait, .reason = Denial::cooldown};
  if (!verdict.behind_probe) {
    held.not_before = now.wall + (verdict.until - now.steady);
  }
  return held;
}

// A wait that the rule does not allow to last so long.
Prospect cut_short(const Prospect& prospect, const Limit& limit, WallTime now) {
  if (prospect.what != What::wait || !limit.wait || !prospect.not_before) return prospect;
  return *prospect.not_before - now > *limit.wait ? refused(*prospect.reason, *limit.wait)
                                                  : prospect;
}

// What becomes of it before its upstream's throttle: nobody overtakes those of its own tenant.
Prospect at_the_throttle(const ProspectFacts& facts, const Prospect& otherwise) {
  if (facts.before_throttle == 0) return otherwise;
  if (facts.units.limit.wait == milliseconds{0}) return refused(Denial::throttled);
  if (facts.room_full) return refused(Denial::queue_full);
  return {.what = What::wait, .reason = Denial::throttled, .ahead = facts.before_throttle};
}

Prospect behind_the_gate(const ProspectFacts& facts, const Prospect& gate, const Instant& now) {
  const Limit& limit = facts.units.limit;
  Prospect line{.because = limit.unlimited ? "its rule has no limit"
                                           : "its rule is a shadow, which holds nobody back"};
  if (!limit.unlimited && !limit.shadow) line = at_the_line(facts, now);
  if (line.what == What::refuse || gate.what == What::go) return cut_short(line, limit, now.wall);
  // Held at the gate, and then perhaps in line: the later of the two.
  const bool later = line.not_before && gate.not_before && *line.not_before > *gate.not_before;
  return later ? cut_short(line, limit, now.wall) : gate;
}

// What somebody waits for, and until when at the earliest.
std::string wait_in_words(const Prospect& prospect) {
  const bool known = prospect.not_before.has_value();
  const std::string until =
      known ? "until " + utc_text_ms(*prospect.not_before) + " at the earliest" : "";
  if (prospect.reason == Denial::throttled) return "waits for leave of its upstream's throttle";
  if (prospect.reason == Denial::cooldown) {
    return "waits for its upstream's cooldown, " + (known ? until : "until a probe was answered");
  }
  return "waits for a unit, " + (known ? until : "until one comes free");
}

}  // namespace

Usage usage_of(const UnitFacts& facts, WallTime now) {
  const Allowance::State& state = facts.summary.state;
  const bool windowed = aligned(facts.limit.mode);
  // Of a window that has begun since nobody here knows more than the store does.
  const bool current = facts.known && state.limit > 0 && !(windowed && now >= state.window.end());
  Usage usage;
  usage.waiting = facts.known ? facts.summary.waiting : 0;
  usage.in_hand = current ? facts.summary.in_hand : 0;
  usage.used = std::max(current ? state.used : 0, facts.claimed.value_or(0));
  usage.left = std::max<std::int64_t>(0, facts.units - usage.used) + usage.in_hand;
  usage.full = (current && state.full) || (facts.claimed && *facts.claimed >= facts.units);
  if (windowed) {
    usage.more_at = window_at(now, facts.limit.window).end();
  } else if (current) {
    usage.more_at = state.more_at;
  }
  return usage;
}

Prospect foresee(const ProspectFacts& facts, const Instant& now) {
  const Prospect gate = cut_short(at_the_gate(facts, now), facts.units.limit, now.wall);
  if (gate.what == What::refuse) return gate;
  const Prospect prospect = behind_the_gate(facts, gate, now);
  const bool goes = prospect.what == What::go || prospect.what == What::claim;
  return goes ? at_the_throttle(facts, prospect) : prospect;
}

std::string_view to_string(What what) {
  switch (what) {
    case What::go:
      return "go";
    case What::claim:
      return "claim";
    case What::wait:
      return "wait";
    case What::refuse:
      break;
  }
  return "refuse";
}

std::string in_words(const Prospect& prospect) {
  switch (prospect.what) {
    case What::go:
      return "goes at once: " + std::string{prospect.because};
    case What::claim:
      return "goes as soon as a unit has been claimed, which takes one transaction";
    case What::refuse: {
      std::string text = "is turned away: " + std::string{reason_of(*prospect.reason)};
      if (prospect.patience.count() == 0) return text;
      return text + ", behind " + std::to_string(prospect.patience.count()) + " ms of waiting";
    }
    case What::wait:
      break;
  }
  std::string text = wait_in_words(prospect);
  if (prospect.ahead > 0) text += ", behind " + std::to_string(prospect.ahead) + " others";
  return text;
}

}  // namespace weir
