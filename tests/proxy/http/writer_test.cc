#include "proxy/http/writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace weir::http {
namespace {

TEST(Writer, AddsPiecesAndNumbersBehindWhatIsThere) {
  std::string out = "before ";
  {
    Writer writer(out);
    writer.put("a", std::string_view{}, std::string{"b"}, std::int64_t{-7});
    writer.put(std::numeric_limits<std::int64_t>::min());
  }
  EXPECT_EQ(out, "before ab-7-9223372036854775808");
}

TEST(Writer, LeavesAStringThatNothingWasAddedToAsItIs) {
  std::string out = "text";
  {
    Writer writer(out);
  }
  EXPECT_EQ(out, "text");
}

TEST(Writer, GrowsTheStringAsFarAsItMust) {
  const std::string large(5'000, 'x');
  std::string out;
  std::string expected;
  {
    Writer writer(out);
    for (int i = 0; i < 10; ++i) {
      writer.put(large, ",");
      expected += large + ",";
    }
  }
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace weir::http
