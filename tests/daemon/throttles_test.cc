#include "daemon/throttles.h"

#include <gtest/gtest.h>

#include "tests/coordination/virtual_world.h"

namespace weir {
namespace {

UpstreamOptions upstream(const std::string& name) {
  UpstreamOptions options;
  options.name = name;
  options.throttle.kind = ThrottleOptions::Kind::sfq;
  return options;
}

TEST(Throttles, OfAnUpstreamThatIsNoMoreAreShownNoMoreButDrainedAsAllOthers) {
  ManualClock clock;
  Throttles throttles(clock);
  const UpstreamOptions stays = upstream("stays"), goes = upstream("goes");
  const auto kept = throttles.configure(stays), gone = throttles.configure(goes);
  throttles.keep_only({stays, goes});
  EXPECT_EQ(throttles.facts().size(), 2u);
  throttles.keep_only({stays});
  EXPECT_EQ(throttles.facts().size(), 1u);
  EXPECT_EQ(throttles.find("goes"), nullptr);
  EXPECT_EQ(throttles.configure(stays), kept);
  throttles.drain();
  for (const auto& throttle : {kept, gone}) {
    ThrottleLine::Visitor visitor;
    EXPECT_FALSE(throttle->line().join(visitor, clock.steady_now())) << "it is drained";
  }
}

}  // namespace
}  // namespace weir
