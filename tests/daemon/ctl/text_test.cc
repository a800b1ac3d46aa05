// Text for a terminal.

#include "daemon/ctl/text.h"

#include <gtest/gtest.h>

namespace weir::ctl {
namespace {

using namespace std::chrono_literals;

TEST(Text, WhatATerminalWouldObeyIsReplaced) {
  EXPECT_EQ(harmless("a\x1b[2Jb\n\x7f"), "a?[2Jb??");
  EXPECT_EQ(harmless("\xc2\x9b"
                     "2J"),
            "?2J");  // CSI as one character
  EXPECT_EQ(harmless("/grün"), "/grün");
  EXPECT_EQ(harmless("\xc2"), "\xc2");
}

TEST(Text, IsCutByCharactersAndNotByBytes) {
  EXPECT_EQ(cut_to("grün", 4, Glyphs::unicode), "grün");
  EXPECT_EQ(cut_to("grüne", 4, Glyphs::unicode), "grü…");
  EXPECT_EQ(cut_to("abcdef", 3, Glyphs::ascii), "ab~");
  EXPECT_EQ(cut_to("abc", 1, Glyphs::ascii), "~");
  EXPECT_EQ(cut_to("abc", 0, Glyphs::ascii), "");
}

TEST(Text, ColumnsLineUpAndLinesEndWithoutBlanks) {
  const std::string text = table({{"NAME"}, {"USED", Column::Align::right}, {"LAST"}},
                                 {{"/grün", "7", "x"}, {"/a", "12345", ""}});
  EXPECT_EQ(text,
            "NAME    USED  LAST\n"
            "/grün      7  x\n"
            "/a     12345\n");
}

TEST(Bar, ShowsHowMuchIsUsed) {
  EXPECT_EQ(bar(0, 10, 10, Glyphs::ascii), "..........");
  EXPECT_EQ(bar(5, 10, 10, Glyphs::ascii), "#####.....");
  EXPECT_EQ(bar(10, 10, 10, Glyphs::ascii), "##########");
  EXPECT_EQ(bar(1, 2, 2, Glyphs::unicode), "█░");
}

TEST(Bar, ALittleIsNotNothingAndAlmostAllIsNotAll) {
  EXPECT_EQ(bar(1, 1000, 4, Glyphs::ascii), "#...");
  EXPECT_EQ(bar(999, 1000, 4, Glyphs::ascii), "###.");
}

TEST(Bar, BearsAnyNumbers) {
  EXPECT_EQ(bar(20, 10, 4, Glyphs::ascii), "####");
  EXPECT_EQ(bar(5, 0, 4, Glyphs::ascii), "#...");
  EXPECT_EQ(bar(-5, 10, 4, Glyphs::ascii), "....");
  EXPECT_EQ(bar(5, 10, 0, Glyphs::ascii), "");
}

TEST(Span, IsSaidInTheTwoLargestUnits) {
  EXPECT_EQ(span_text(-3s), "0 s");
  EXPECT_EQ(span_text(59s), "59 s");
  EXPECT_EQ(span_text(185s), "3 min 5 s");
  EXPECT_EQ(span_text(180s), "3 min");
  EXPECT_EQ(span_text(2h + 10min + 9s), "2 h 10 min");
  EXPECT_EQ(span_text(99h), "4 d 3 h");
}

}  // namespace
}  // namespace weir::ctl
