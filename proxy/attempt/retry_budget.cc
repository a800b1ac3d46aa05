#include "proxy/attempt/retry_budget.h"

#include <stdexcept>

namespace weir {
namespace {

constexpr std::int64_t kDeposit = 1000;

}  // namespace

RetryBudget::RetryBudget(double share, int min_per_second, std::chrono::milliseconds ttl,
                         SteadyTime now)
    : start_(now), slot_length_(std::chrono::nanoseconds{ttl} / kSlots) {
  using namespace std::chrono_literals;
  if (ttl < 1s || ttl > 60s) throw std::invalid_argument("ttl must be from 1s to 60s");
  if (min_per_second < 0) throw std::invalid_argument("min_per_second must not be negative");
  if (!(share >= 0 && share <= 1000)) throw std::invalid_argument("share must be from 0 to 1000");
  if (share > 0) {
    deposit_ = kDeposit;
    // Too small a share to pay for anything is still no division by zero.
    const double withdraw = static_cast<double>(kDeposit) / share;
    withdraw_ = withdraw < 1e15 ? static_cast<std::int64_t>(withdraw) : std::int64_t{1} << 50;
  }
  const double reserve = static_cast<double>(min_per_second) *
                         std::chrono::duration<double>(ttl).count() *
                         static_cast<double>(withdraw_);
  reserve_ = reserve < 4e18 ? static_cast<std::int64_t>(reserve) : std::int64_t{1} << 61;
}

RetryBudget::Slot& RetryBudget::slot(SteadyTime now) {
  const std::int64_t number = number_of(now);
  Slot& slot = slots_[static_cast<std::size_t>(number % kSlots)];
  if (slot.number != number) slot = {number, 0};
  return slot;
}

std::int64_t RetryBudget::balance(SteadyTime now) const {
  const std::int64_t number = number_of(now);
  std::int64_t sum = reserve_;
  for (const Slot& slot : slots_) {
    if (slot.number >= 0 && number - slot.number < kSlots) sum += slot.sum;
  }
  return sum;
}

bool RetryBudget::try_retry(SteadyTime now) {
  if (balance(now) < withdraw_) return false;
  slot(now).sum -= withdraw_;
  return true;
}

std::int64_t RetryBudget::affordable(SteadyTime now) const { return balance(now) / withdraw_; }

}  // namespace weir
