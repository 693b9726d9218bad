#include "cli/console.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(SafeForTerminalTest, TextStaysAsItIs) {
  const std::string text = "a\tb\nçé 日本 🙂 \xC2\xA0";
  EXPECT_EQ(safe_for_terminal(text), text);
}

TEST(SafeForTerminalTest, WhatSteersATerminalIsTakenOut) {
  EXPECT_EQ(safe_for_terminal("a\033[2Jb\rc\x7F\b\a"), "a[2Jbc");
  EXPECT_EQ(
      safe_for_terminal("a\xC2\x9B"
                        "2Jb"),
      "a2Jb");
}

} // namespace
} // namespace ingle
