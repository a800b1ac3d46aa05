// What an admin page is asked for.

#include "daemon/query.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Query, IsDecodedOnceAndKeptInOrder) {
  EXPECT_EQ(split_query("path=%2Fa%252Fb&x="), (QueryParts{{"path", "/a%2Fb"}, {"x", ""}}));
  EXPECT_EQ(split_query(""), QueryParts{});
  EXPECT_EQ(split_query("path"), std::nullopt);
  EXPECT_EQ(split_query("path=%4"), std::nullopt);
}

TEST(Query, ResourcesTakeANumberOrAName) {
  EXPECT_EQ(read_resource_query("top=5")->top, 5u);
  EXPECT_EQ(read_resource_query("name=%2Fa")->name, "/a");
  for (const char* bad : {"top=0", "top=100001", "top=5x", "top=", "other=1", "top"}) {
    EXPECT_FALSE(read_resource_query(bad)) << bad;
  }
}

TEST(Query, AQuestionIsARequest) {
  const ExplainQuery read = read_explain_query(
      "path=/a%3Fb&method=POST&host=h:80&client=192.0.2.1&header=X-A:%20b%3Ac&header=Y:");
  EXPECT_EQ(read.fault, "");
  EXPECT_EQ(read.question.target, "/a?b");
  EXPECT_EQ(read.question.method, "POST");
  EXPECT_EQ(read.question.host, "h:80");
  EXPECT_EQ(read.question.client.text(), "192.0.2.1");
  using Fields = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(read.question.fields, (Fields{{"X-A", "b:c"}, {"Y", ""}}));
}

TEST(Query, SaysWhatIsWrongWithAQuestion) {
  EXPECT_EQ(read_explain_query("").fault, "path is missing");
  EXPECT_EQ(read_explain_query("path=/&client=me").fault, "client is not an address");
  EXPECT_EQ(read_explain_query("path=/&header=X").fault, "header is not NAME:VALUE");
  EXPECT_EQ(read_explain_query("path=/&verb=GET").fault, "unknown: verb");
  EXPECT_NE(read_explain_query("path").fault, "");
}

}  // namespace
}  // namespace weir
