#pragma once

// What a client is told about its limit, as fields of an answer's head. Pure.

#include <chrono>
#include <string>
#include <string_view>

#include "coordination/allowance.h"
#include "coordination/limit.h"

namespace weir {

enum class LimitHeaders { ietf, legacy, off };

struct LimitFields {
  LimitHeaders style = LimitHeaders::off;
  std::string_view text{};  // lines with their ends; empty: none are sent
};

struct LimitFacts {
  std::string_view rule;
  Limit limit;  // of the rule, over all replicas
  Standing standing;
  std::chrono::milliseconds waited{0};  // in line; 0: it did not
};

// RateLimit-Policy: "reports";q=100;w=60    X-RateLimit-Limit: 100
// RateLimit: "reports";r=58;t=12            X-RateLimit-Remaining: 58, X-RateLimit-Reset: 12
// Weir-Waited-Ms: 340
void append_limit_fields(std::string& out, LimitHeaders style, const LimitFacts& facts);

}  // namespace weir
