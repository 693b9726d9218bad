#include "engine/piece_size.h"

#include <random>

#include <gtest/gtest.h>

namespace ingle {
namespace {

using Seconds = PieceSize::Seconds;
constexpr Seconds kGap{0.1};

TEST(PieceSize, WhereNothingDecodesAPieceIsAsLongAsItMayBe) {
  PieceSize size(512, kGap);
  size.add_step(512, false, Seconds(3));
  EXPECT_EQ(size.next(false, false), 512);
}

TEST(PieceSize, BesideDecodingAStepKeepsTheGap) {
  for (const double per_token : {1e-4, 3e-4, 2e-3, 0.05, 1.0}) {
    PieceSize size(512, kGap);
    const Seconds decoding{0.004};
    for (int i = 0; i < 20; ++i) {
      size.add_step(0, true, decoding);
      const int piece = size.next(true, false);
      const Seconds took = decoding + piece * Seconds(per_token);
      if (i > 0 && piece > 16) {
        EXPECT_LT(took, kGap) << per_token;
      }
      size.add_step(piece, true, took);
    }
    EXPECT_GE(size.next(true, false), 16);
    EXPECT_LE(size.next(true, false), 512);
  }
}

// The deeper a prompt, the longer each of its tokens takes.
TEST(PieceSize, FollowsAPromptThatBecomesSlower) {
  PieceSize size(512, kGap);
  double per_token = 1e-4;
  for (int i = 0; i < 200; ++i) {
    const int piece = size.next(true, false);
    const Seconds took = piece * Seconds(per_token);
    if (i > 0) {
      EXPECT_LT(took, kGap);
    }
    size.add_step(piece, true, took);
    per_token *= 1.02;
  }
}

TEST(PieceSize, ComesBackAfterAStepThatWasHeldUp) {
  PieceSize size(512, kGap);
  size.add_step(256, true, Seconds(0.05));
  const int usual = size.next(true, false);
  size.add_step(usual, true, Seconds(5));
  EXPECT_EQ(size.next(true, false), 16);
  int steps = 0;
  while (size.next(true, false) < usual / 2) {
    const int piece = size.next(true, false);
    size.add_step(piece, true, piece * Seconds(0.05 / 256));
    ASSERT_LT(++steps, 100);
  }
}

TEST(PieceSize, TheFirstPieceOfAPromptIsSmall) {
  PieceSize size(512, kGap);
  size.add_step(512, false, Seconds(0.01));
  EXPECT_EQ(size.next(true, true), 64);
  EXPECT_EQ(size.next(true, false), 512);
  EXPECT_EQ(size.next(false, true), 512);
}

TEST(PieceSize, BeforeAnythingWasMeasuredAPieceIsSmall) {
  EXPECT_EQ(PieceSize(512, kGap).next(true, false), 64);
  EXPECT_EQ(PieceSize(8, kGap).next(true, false), 8);
  EXPECT_EQ(PieceSize(8, kGap).next(false, false), 8);
}

} // namespace
} // namespace ingle
