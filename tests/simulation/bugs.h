#pragma once

// Mistakes made on purpose, one at a time, so that every check is seen to fail. All but the last
// are made between the core and its store, or between a request and its permit: the product has no
// switch for them. README.md says which check catches which.

#include <array>
#include <optional>
#include <string_view>

namespace weir::sim {

enum class Bug {
  none,
  // What the core sends is changed on its way to the store.
  no_range_compare,
  mixed_resources,
  aligned_lease_without_margin,
  sliding_lease_too_short,
  leases_never_end,
  deletes_too_much,
  // The store's answer is changed on its way back.
  unknown_as_granted,
  conflict_as_granted,
  unknown_never_answered,
  reads_hide_a_claim,
  revision_too_high,
  keepalive_not_sent,
  lease_loss_hidden,
  watch_says_nothing,
  // Requests treat their permits wrongly.
  sent_without_a_look,
  spent_twice,
  settled_when_sent,
  never_settled,
  wake_lost,
  woken_in_reverse,
  tenants_ignored,
  // The loop around the core.
  timer_forgotten,
  busy_loop,
  // More than is promised for: shows where the promise ends.
  clocks_far_apart,
};

struct BugName {
  Bug bug;
  std::string_view name;
  std::string_view check;  // the one that catches it
};

std::optional<Bug> bug_named(std::string_view name);
std::string_view name_of(Bug bug);

inline constexpr std::array<BugName, 24> kBugs{{
    {Bug::no_range_compare, "no_range_compare", "store_over_limit"},
    {Bug::mixed_resources, "mixed_resources", "waits_while_free"},
    {Bug::aligned_lease_without_margin, "aligned_lease_without_margin", "window_over_limit"},
    {Bug::sliding_lease_too_short, "sliding_lease_too_short", "sliding_over_limit"},
    {Bug::leases_never_end, "leases_never_end", "left_behind"},
    {Bug::deletes_too_much, "deletes_too_much", "not_covered"},
    {Bug::unknown_as_granted, "unknown_as_granted", "not_covered"},
    {Bug::conflict_as_granted, "conflict_as_granted", "not_covered"},
    {Bug::unknown_never_answered, "unknown_never_answered", "refused_without_reason"},
    {Bug::reads_hide_a_claim, "reads_hide_a_claim", "store_over_limit"},
    {Bug::revision_too_high, "revision_too_high", "store_over_limit"},
    {Bug::keepalive_not_sent, "keepalive_not_sent", "lease_ran_out"},
    {Bug::lease_loss_hidden, "lease_loss_hidden", "loss_not_reported"},
    {Bug::watch_says_nothing, "watch_says_nothing", "waits_while_free"},
    {Bug::sent_without_a_look, "sent_without_a_look", "wrong_window"},
    {Bug::spent_twice, "spent_twice", "spent_twice"},
    {Bug::settled_when_sent, "settled_when_sent", "spent_twice"},
    {Bug::never_settled, "never_settled", "not_served"},
    {Bug::wake_lost, "wake_lost", "not_served"},
    {Bug::woken_in_reverse, "woken_in_reverse", "order"},
    {Bug::tenants_ignored, "tenants_ignored", "fairness"},
    {Bug::timer_forgotten, "timer_forgotten", "waits_while_free"},
    {Bug::busy_loop, "busy_loop", "spin"},
    {Bug::clocks_far_apart, "clocks_far_apart", "window_over_limit"},
}};

inline std::optional<Bug> bug_named(std::string_view name) {
  for (const BugName& bug : kBugs) {
    if (bug.name == name) return bug.bug;
  }
  return std::nullopt;
}

inline std::string_view name_of(Bug bug) {
  for (const BugName& entry : kBugs) {
    if (entry.bug == bug) return entry.name;
  }
  return "none";
}

}  // namespace weir::sim
