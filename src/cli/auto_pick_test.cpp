#include "cli/auto_pick.h"

#include <vector>

#include <gtest/gtest.h>

namespace ingle {
namespace {

std::string picked(const std::vector<PickCandidate>& candidates) {
  const PickCandidate* model = pick_model(candidates, 1000);
  return model == nullptr ? "" : model->name;
}

// Acceptance 209.
TEST(AutoPick, auto_pick_rules) {
  const PickCandidate small{"small", false, 100, 200};
  const PickCandidate medium{"medium", false, 400, 600};
  const PickCandidate large{"large", false, 500, 700};
  const PickCandidate huge{"huge", false, 700, 800};
  const PickCandidate fallback{"default", true, 50, 60};
  EXPECT_EQ(picked({small, medium, fallback}), "default");
  EXPECT_EQ(picked({small, medium, large, huge}), "medium");
  EXPECT_EQ(picked({large, huge}), "large");
  EXPECT_EQ(picked({huge}), "");
  EXPECT_EQ(picked({}), "");
  // It is there, but not for this machine.
  EXPECT_EQ(picked({{"default", true, 700, 800}, small}), "small");
}

TEST(AutoPick, OfEqualsTheFirst) {
  EXPECT_EQ(picked({{"a", false, 1, 2}, {"b", false, 1, 2}}), "a");
}

} // namespace
} // namespace ingle
