#pragma once

// What AWS' clients do in adaptive mode: a model, to compare Weir's throttles with. A client
// measures how fast it gets answers. The first throttled answer turns a token bucket on, whose rate
// falls with each of them and grows along a cubic curve in between, slowly where the last one came:
//
//   throttled   w = min(measured, fill), or measured while the bucket is off;  rate = 0.7 w
//   success     rate = 0.4 (dt - K)^3 + w,  K = cbrt(0.3 w / 0.4),  dt: seconds since the last one
//   bucket      fill = max(0.5, min(rate, 2 measured)),  capacity = max(1, rate)
//
// Pure: `now` is handed in.

#include <algorithm>
#include <chrono>
#include <cmath>

#include "coordination/base/clock.h"
#include "proxy/throttle/token_bucket.h"

namespace weir::test {

class Cubic {
 public:
  // As if throttled then, at a rate of w.
  Cubic(double w, SteadyTime throttled_at) : w_(w), throttled_at_(throttled_at) {}

  // Seconds until the rate is what it was when it was throttled.
  double zero_point() const { return std::cbrt(w_ * (1 - kDecrease) / kScale); }

  double success(SteadyTime now) const {
    const double dt = std::chrono::duration<double>(now - throttled_at_).count();
    return kScale * std::pow(dt - zero_point(), 3) + w_;
  }

  double throttled(double w, SteadyTime now) {
    w_ = w;
    throttled_at_ = now;
    return kDecrease * w;
  }

 private:
  static constexpr double kScale = 0.4, kDecrease = 0.7;
  double w_;
  SteadyTime throttled_at_;
};

// Answers per second, by half seconds of the clock; a later one is worth more.
class MeasuredRate {
 public:
  explicit MeasuredRate(SteadyTime start) : since_(half_second_of(start)) {}

  double value() const { return value_; }

  void count(SteadyTime now) {
    count_ += 1;
    const SteadyTime half_second = half_second_of(now);
    if (half_second <= since_) return;
    const double recent = count_ / std::chrono::duration<double>(half_second - since_).count();
    value_ = kWeight * recent + (1 - kWeight) * value_;
    count_ = 0;
    since_ = half_second;
  }

 private:
  static constexpr double kWeight = 0.8;
  static SteadyTime half_second_of(SteadyTime now) {
    using HalfSeconds = std::chrono::duration<std::int64_t, std::ratio<1, 2>>;
    return std::chrono::floor<HalfSeconds>(now);
  }

  SteadyTime since_;
  double count_ = 0, value_ = 0;
};

class CubicRate {
 public:
  explicit CubicRate(SteadyTime start) : measured_(start), cubic_(0, start) {
    tokens_.refill(0, 0, start);
  }

  double measured() const { return measured_.value(); }
  double fill() const { return fill_; }

  // Where the origin waits for a token, whoever asks here is turned away.
  bool take(SteadyTime now) {
    if (!on_) return true;
    tokens_.refill(fill_, capacity_, now);
    return tokens_.take();
  }

  void success(SteadyTime now) {
    measured_.count(now);
    fill_at(cubic_.success(now), now);
  }

  void throttled(SteadyTime now) {
    measured_.count(now);
    const double w = on_ ? std::min(measured(), fill_) : measured();
    on_ = true;
    fill_at(cubic_.throttled(w, now), now);
  }

 private:
  static constexpr double kLeast = 0.5;

  void fill_at(double rate, SteadyTime now) {
    tokens_.refill(fill_, capacity_, now);
    rate = std::min(rate, 2 * measured());
    fill_ = std::max(kLeast, rate);
    capacity_ = std::max(1.0, rate);
    tokens_.keep_at_most(capacity_);
  }

  MeasuredRate measured_;
  Cubic cubic_;
  TokenBucket tokens_;  // empty at first
  double fill_ = 0, capacity_ = 0;
  bool on_ = false;
};

}  // namespace weir::test
