#include "text/lark_text.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

OutputMarkup with_specials() {
  OutputMarkup markup;
  markup.special_tokens = {{"<a>", 7}, {"<a>b", 8}};
  return markup;
}

TEST(LarkText, LiteralsAreQuoted) {
  EXPECT_EQ(lark_literal("", {}), "");
  EXPECT_EQ(lark_literal("x\"\\\n", {}), R"("x\"\\\x0a")");
}

TEST(LarkText, SpecialTokensAreNamedByTheirIds) {
  const OutputMarkup markup = with_specials();
  EXPECT_EQ(lark_literal("<a>", markup), "<[7]>");
  EXPECT_EQ(lark_literal("x<a>b<a>c", markup), "\"x\" <[8]> <[7]> \"c\"");
  EXPECT_EQ(lark_literal("<a>", {}), "\"<a>\"");
}

TEST(LarkText, TextGoesUpToItsEnd) {
  const LarkText token = lark_until("<a>", with_specials(), "until");
  EXPECT_EQ(token.reference, "/(?s:.*)/ <[7]>");
  EXPECT_EQ(token.rules, "");
  const LarkText text = lark_until("</a>", with_specials(), "until");
  EXPECT_EQ(text.reference, "until");
  EXPECT_EQ(text.rules, "until[suffix=\"</a>\"]: /(?s:.*)/\n");
}

} // namespace
} // namespace ingle
