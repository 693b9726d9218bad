#include "kernels/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingle {
namespace {

using testing::HasSubstr;

TEST(Isa, PortableIsEverywhereAndTheQuickestIsChosen) {
  const auto isas = supported_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::kPortable);
  EXPECT_EQ(*choose_isa(""), isas.back());
}

TEST(Isa, EachCanBeForcedByItsName) {
  for (const Isa isa : supported_isas()) {
    EXPECT_EQ(*choose_isa(to_string(isa)), isa);
  }
}

TEST(Isa, OneThatIsNotThereIsAnErrorThatNamesThoseThatAre) {
  const Status status = choose_isa("sse9").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
  EXPECT_THAT(status.message(), HasSubstr("'sse9'"));
  EXPECT_THAT(status.message(), HasSubstr("portable"));
}

} // namespace
} // namespace ingle
