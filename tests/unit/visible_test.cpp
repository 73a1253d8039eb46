#include "lib/core/visible.hpp"

#include <gtest/gtest.h>

#include <string>

namespace mxfp4 {
namespace {

TEST(Visible, PlainTextStays) {
  EXPECT_EQ(visible(""), "");
  EXPECT_EQ(visible("model.layers.3: H 2880 -> 3072"), "model.layers.3: H 2880 -> 3072");
  EXPECT_EQ(visible("Größe, 重み, \U0001F600"), "Größe, 重み, \U0001F600");
}

TEST(Visible, ControlsAreEscaped) {
  EXPECT_EQ(visible("a\x1b[31mb\n\r\t\x7f"), "a\\x1b[31mb\\x0a\\x0d\\x09\\x7f");
  EXPECT_EQ(visible(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(visible("\u0085\u009b2J"), "\\u0085\\u009b2J");
}

TEST(Visible, WhatReordersOrHidesIsEscaped) {
  EXPECT_EQ(visible("\u202eabc\u202c"), "\\u202eabc\\u202c");
  EXPECT_EQ(visible("\u2066\u2069\u200e\u200f\u061c"), "\\u2066\\u2069\\u200e\\u200f\\u061c");
  EXPECT_EQ(visible("\u2028\u2029\u200b\ufeff\u00ad"), "\\u2028\\u2029\\u200b\\ufeff\\u00ad");
  EXPECT_EQ(visible("\U000E0041"), "\\U000e0041");
}

TEST(Visible, WhatIsNoUtf8IsEscapedByteByByte) {
  EXPECT_EQ(visible("\xff\xc0\xaf"), "\\xff\\xc0\\xaf");
  EXPECT_EQ(visible("a\xe2\x80"), "a\\xe2\\x80");
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(visible("\x9b"), "\\x9b");                    // C1 to terminals that read bytes
}

}  // namespace
}  // namespace mxfp4
