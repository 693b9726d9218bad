#include "kernels/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/testing/random_weights.h"

namespace ingle {
namespace {

using testing::ElementsAreArray;

struct Shape {
  int rows = 0;
  int columns = 0;
  int bits = 0;
  int group_size = 0;
  FloatType type = FloatType::kF16;
};

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  for (const FloatType type :
       {FloatType::kF32, FloatType::kF16, FloatType::kBF16}) {
    for (const int rows : {1, 16, 33}) {
      shapes.push_back({rows, 24, 0, 0, type});
      for (const int bits : {2, 3, 4, 5, 6, 8}) {
        for (const int group : {32, 64, 128}) {
          shapes.push_back({rows, 2 * group, bits, group, type});
        }
      }
    }
  }
  for (const int rows : {1, 33}) {
    shapes.push_back({rows, 96, 4, 32, FloatType::kE8M0});
  }
  return shapes;
}

TEST(Matrix, RowsComeOutAsTheyWentIn) {
  std::mt19937 random(1);
  Arena arena;
  for (const Shape& shape : all_shapes()) {
    const RandomMatrix m = random_matrix(
        random,
        arena,
        shape.rows,
        shape.columns,
        shape.bits,
        shape.group_size,
        shape.type);
    for (int row = 0; row < shape.rows; ++row) {
      const auto columns = static_cast<size_t>(shape.columns);
      std::vector<float> out(columns);
      unpack_row(m.packed, row, out.data());
      const auto from = m.values.begin() +
          static_cast<ptrdiff_t>(static_cast<size_t>(row) * columns);
      ASSERT_THAT(
          out, ElementsAreArray(from, from + static_cast<ptrdiff_t>(columns)))
          << shape.bits << " bits, row " << row << " of " << shape.rows;
    }
  }
}

TEST(Matrix, PackedIsAsLargeAsTheFileHasIt) {
  // Of 576 columns of 4 bits and f16: 288 bytes, 18 scales and 18 biases.
  const PackedMatrix m{nullptr, 576, 576, 4, 32, FloatType::kF16};
  EXPECT_EQ(m.panel_bytes() * static_cast<size_t>(m.panels()), 576u * 360u);
  // 288 bytes and 18 scales of one.
  const PackedMatrix other{nullptr, 576, 576, 4, 32, FloatType::kE8M0};
  EXPECT_EQ(
      other.panel_bytes() * static_cast<size_t>(other.panels()), 576u * 306u);
}

TEST(Matrix, OnlyWhatTheKernelsHaveCanBePacked) {
  EXPECT_TRUE(can_pack(64, 4, 64));
  EXPECT_TRUE(can_pack(96, 3, 32));
  EXPECT_FALSE(can_pack(64, 7, 32));
  EXPECT_FALSE(can_pack(64, 1, 32));
  EXPECT_FALSE(can_pack(64, 4, 16));
  EXPECT_FALSE(can_pack(96, 4, 64));
}

TEST(Arena, PiecesAreAlignedZerosThatDoNotOverlap) {
  Arena arena;
  std::byte* first = arena.allocate(3);
  std::byte* second = arena.allocate(100);
  std::byte* large = arena.allocate(size_t{40} << 20);
  EXPECT_GE(second - first, 64);
  for (const std::byte* piece : {first, second, large}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % 64, 0u);
    EXPECT_EQ(piece[0], std::byte{0});
  }
  EXPECT_EQ(large[(size_t{40} << 20) - 1], std::byte{0});
}

} // namespace
} // namespace ingle
