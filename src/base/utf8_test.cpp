#include "base/utf8.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(Utf8, IsStrict) {
  EXPECT_TRUE(is_utf8("a\xc3\xa9\xe2\x96\x81\xf0\x9f\x99\x82"));
  for (const std::string_view bad :
       {"\x80",
        "\xc0\x80",
        "\xc3",
        "\xe0\x80\x80",
        "\xed\xa0\x80",
        "\xf5",
        "\xf4\x90\x80\x80",
        "\xe2\x96",
        "\xf0\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

} // namespace
} // namespace ingle
