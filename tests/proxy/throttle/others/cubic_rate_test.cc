#include "tests/proxy/throttle/others/cubic_rate.h"

#include <gtest/gtest.h>

#include "tests/proxy/throttle/scenario.h"

namespace weir::test {
namespace {

TEST(CubicRate, GrowsSlowlyAroundTheRateItWasThrottledAtAndFastBeyondIt) {
  const Cubic cubic(10, at(5));
  const double rates[] = {7,
                          9.64893600966,
                          10.000030849917,
                          10.453284520772,
                          13.408697022224,
                          21.266268354274,
                          36.425998516920};
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(cubic.success(at(5 + i)), rates[i], 1e-10) << i;
}

TEST(CubicRate, FallsByThreeTenthsWithEachThrottledAnswer) {
  Cubic cubic(10, at(5));
  EXPECT_NEAR(cubic.success(at(5)), 7, 1e-10);
  const double before = cubic.success(at(6));
  EXPECT_NEAR(before, 9.648936, 1e-6);
  const double once = cubic.throttled(before, at(7));
  EXPECT_NEAR(once, 6.754255206762, 1e-10);
  const double twice = cubic.throttled(once, at(8));
  EXPECT_NEAR(twice, 4.727978644733, 1e-10);
  // The figures that follow are of an origin that goes on from the rate it was lowered to.
  const Cubic lowered(twice, at(8));
  EXPECT_NEAR(lowered.success(at(9)), 4.670125557970, 1e-10);
  EXPECT_NEAR(lowered.success(at(10)), 4.770870456867, 1e-10);
  EXPECT_NEAR(lowered.success(at(11)), 6.011819748005, 1e-10);
  EXPECT_NEAR(lowered.success(at(12)), 10.792973431384, 1e-10);
}

TEST(CubicRate, FillsAtTheCurveButNeverAtMoreThanTwiceWhatIsMeasured) {
  struct Step {
    double measured, fill;
  };
  const Step steps[] = {{0, 0.5},
                        {0, 0.5},
                        {4.8, 0.5},
                        {4.8, 0.5},
                        {4.16, 0.5},
                        {4.16, 0.6912},
                        {4.16, 1.0976},
                        {5.632, 1.6384},
                        {5.632, 2.3328},
                        {4.3264, 3.02848},  // throttled
                        {4.3264, 3.4866391735},
                        {4.3264, 3.8218744160},
                        {5.66528, 4.0533857277},
                        {5.66528, 4.2003731085},
                        {4.333056, 4.2820365583},
                        {4.333056, 2.9974255908},  // throttled
                        {4.333056, 3.4522263944}};
  CubicRate rate(at(0));
  int number = 0;
  for (const Step& step : steps) {
    ++number;
    const bool throttled = number == 10 || number == 16;
    const SteadyTime now = at(number * 0.2);
    throttled ? rate.throttled(now) : rate.success(now);
    EXPECT_NEAR(rate.measured(), step.measured, 1e-9) << number;
    EXPECT_NEAR(rate.fill(), step.fill, 1e-9) << number;
  }
}

TEST(CubicRate, IsBackAtWhatItWasAfterTheCubicRootOfWhatItLost) {
  EXPECT_NEAR(Cubic(10, at(0)).zero_point(), 1.9574338206, 1e-10);
  EXPECT_NEAR(Cubic(8, at(0)).zero_point(), 1.8171205928, 1e-10);
}

TEST(CubicRate, HoldsNobodyBackBeforeTheFirstThrottledAnswer) {
  CubicRate rate(at(0));
  for (int i = 1; i <= 1000; ++i) {
    EXPECT_TRUE(rate.take(at(i * 0.01)));
    rate.success(at(i * 0.01));
  }
  EXPECT_NEAR(rate.measured(), 100, 1);
  rate.throttled(at(10.01));
  int taken = 0;
  for (int i = 1; i <= 1000; ++i) taken += rate.take(at(10.01 + i * 0.001));
  EXPECT_NEAR(taken, 70 + 70, 2) << "a second's worth in store, and a second's";
}

}  // namespace
}  // namespace weir::test
