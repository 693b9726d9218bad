// Random matrices in the form that files have, packed, and in plain f32.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/matrix.h"

namespace ingle {

struct RandomMatrix {
  PackedMatrix packed;
  std::vector<float> values; // [rows, columns], exactly those of `packed`
};

std::vector<float> random_floats(std::mt19937& random, int count);

// Quantised where bits != 0, else dense; MXFP4 where the type is kE8M0. The
// sources stand at odd addresses.
RandomMatrix random_matrix(
    std::mt19937& random,
    Arena& arena,
    int rows,
    int columns,
    int bits,
    int group_size,
    FloatType type);

} // namespace ingle
