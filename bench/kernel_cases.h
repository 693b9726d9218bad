// What bench/kernels_benchmark measures: formats, shapes, numbers of tokens.
#pragma once

#include <string>

#include "kernels/kernel_set.h"

namespace ingle {

struct Format {
  int bits = 0; // 0: dense
  int group_size = 0;
  FloatType type = FloatType::kF16;
};

struct Shape {
  int rows = 0;
  int columns = 0;
};

// q, gate and down of SmolLM2; hidden sizes of 640 and 2048.
inline constexpr Shape kShapes[] = {
    {576, 576},
    {1536, 576},
    {576, 1536},
    {640, 2048},
    {2048, 640},
    {2048, 2048}};
inline constexpr Shape kHeads[] = {{49152, 576}, {262144, 640}};
// All formats have this one.
inline constexpr Shape kFormatsShape = {2048, 2048};
inline constexpr int kBits[] = {2, 3, 4, 5, 6, 8};
inline constexpr int kGroupSizes[] = {32, 64, 128};
inline constexpr FloatType kFloatTypes[] = {
    FloatType::kF16,
    FloatType::kBF16,
    FloatType::kF32};
inline constexpr Format kUsualFormat = {4, 32};
inline constexpr Format kMxfp4 = {4, 32, FloatType::kE8M0};
inline constexpr Format kHeadFormat = {8, 32};
inline constexpr int kTokens[] = {1, 8, 512};
inline constexpr Inputs kPlanes[] = {Inputs::kTwoPlanes, Inputs::kOnePlane};

struct AttendCase {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int tokens = 0;
  int depth = 0;
  int kv_bits = 16;
};
inline constexpr AttendCase kAttendCases[] = {
    {9, 3, 64, 1, 2048},
    {9, 3, 64, 1, 8192},
    {9, 3, 64, 512, 0},
    {9, 3, 64, 512, 7680},
    {9, 3, 64, 1, 8192, 8},
    {9, 3, 64, 512, 7680, 8},
    {9, 3, 64, 1, 8192, 4},
    {9, 3, 64, 512, 7680, 4},
    {4, 1, 256, 1, 2048},
    {4, 1, 256, 1, 8192},
    {4, 1, 256, 512, 0},
    {4, 1, 256, 512, 7680}};

struct DeltaCase {
  int hidden = 0;
  int key_heads = 0;
  int value_heads = 0;
  int head_dim = 0;
  int tokens = 0;
};
// Qwen 3.5 of 0.8 and of 4 billion parameters.
inline constexpr DeltaCase kDeltaCases[] = {
    {1024, 16, 16, 128, 1},
    {1024, 16, 16, 128, 512},
    {2560, 16, 32, 128, 1},
    {2560, 16, 32, 128, 512}};

// Hidden and inner size: SmolLM2's and others'.
inline constexpr Shape kMlps[] = {{576, 1536}, {640, 2048}, {2048, 8192}};
inline constexpr int kWidths[] = {576, 640, 2048};
inline constexpr int kRows = 512; // of what has no tokens of its own

inline std::string name_of(const Format& format) {
  if (format.type == FloatType::kE8M0) {
    return "mxfp4";
  }
  if (format.bits != 0) {
    return std::to_string(format.bits) + "bit_g" +
        std::to_string(format.group_size);
  }
  switch (format.type) {
    case FloatType::kF16:
      return "f16";
    case FloatType::kBF16:
      return "bf16";
    case FloatType::kF32:
    case FloatType::kE8M0:
      break;
  }
  return "f32";
}

inline std::string name_of(const Shape& shape) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.columns);
}

// As --numerics calls them.
inline std::string name_of(Inputs inputs) {
  switch (inputs) {
    case Inputs::kOnePlane:
      return "fast";
    case Inputs::kTwoPlanes:
      return "near";
    case Inputs::kFloats:
      break;
  }
  return "floats";
}

} // namespace ingle
