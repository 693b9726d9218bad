// A register of 16 lanes in plain C++: what each Simd has to have, and what
// its functions mean.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/float16.h"

// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result): offsets
// within a panel, a tile or a block fit an int.

namespace ingle {
namespace {

struct PortableSimd {
  // Tokens of a tile, panels and query rows at a time, registers of positions
  // or dimensions at a time in attention, panels of a recurrent state at a
  // time: what fits the registers.
  static constexpr int kTileTokens = 1;
  static constexpr int kPanels = 1;
  static constexpr int kQueryRows = 1;
  static constexpr int kAttentionLanes = 1;
  static constexpr int kDeltaPanels = 1;

  static constexpr int kLaneCount = 16;
  struct F {
    float v[kLaneCount];
  };
  struct I {
    int32_t v[kLaneCount];
  };
  struct B {
    uint8_t v[4 * kLaneCount];
  };

  template <class To, class Fn>
  static To each(Fn&& fn) {
    To to;
    for (int i = 0; i < kLaneCount; ++i) {
      to.v[i] = fn(i);
    }
    return to;
  }

  // ---- f32
  static F set1(float x) {
    return each<F>([&](int) { return x; });
  }
  static F load(const float* p) {
    return each<F>([&](int i) { return p[i]; });
  }
  static void store(float* p, F a) {
    std::memcpy(p, a.v, sizeof a.v);
  }
  static F load_unaligned(const std::byte* p) {
    F a;
    std::memcpy(a.v, p, sizeof a.v);
    return a;
  }
  static F load_f16(const std::byte* p) {
    return each<F>([&](int i) { return ingle::load_f16(p + 2 * i); });
  }
  // To the nearest, ties to even.
  static void store_f16(std::byte* p, F a) {
    for (int i = 0; i < kLaneCount; ++i) {
      const uint16_t bits = f32_to_f16(a.v[i]);
      std::memcpy(p + 2 * i, &bits, sizeof bits);
    }
  }
  static F load_bf16(const std::byte* p) {
    return each<F>([&](int i) { return bf16_to_f32(load_u16(p + 2 * i)); });
  }
  // 2^(byte - 127), 0 where the byte is.
  static F load_e8m0(const std::byte* p) {
    return each<F>([&](int i) {
      return std::bit_cast<float>(static_cast<uint32_t>(p[i]) << 23);
    });
  }
  static F add(F a, F b) {
    return each<F>([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F sub(F a, F b) {
    return each<F>([&](int i) { return a.v[i] - b.v[i]; });
  }
  static F mul(F a, F b) {
    return each<F>([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F div(F a, F b) {
    return each<F>([&](int i) { return a.v[i] / b.v[i]; });
  }
  // a * b + c, rounded once.
  static F fma(F a, F b, F c) {
    return each<F>([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
  }
  static F max(F a, F b) {
    return each<F>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F min(F a, F b) {
    return each<F>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F abs(F a) {
    return each<F>([&](int i) { return std::fabs(a.v[i]); });
  }
  static F copy_sign(F a, F sign) {
    return each<F>([&](int i) { return std::copysign(a.v[i], sign.v[i]); });
  }
  // Lanes [begin, end) of a, `other` in the rest.
  static F keep_lanes(F a, int begin, int end, float other) {
    return each<F>(
        [&](int i) { return i >= begin && i < end ? a.v[i] : other; });
  }
  // A bit for each lane of a that is >= that of b.
  static uint32_t at_least(F a, F b) {
    uint32_t lanes = 0;
    for (int i = 0; i < kLaneCount; ++i) {
      lanes |= a.v[i] >= b.v[i] ? 1u << i : 0;
    }
    return lanes;
  }
  // v in the lanes where a >= b, 0 in the rest.
  static F where_at_least(F a, F b, F v) {
    return each<F>([&](int i) { return a.v[i] >= b.v[i] ? v.v[i] : 0; });
  }
  // In this order: lane i with i + 8, then i + 4, i + 2, i + 1.
  static float sum(F a) {
    for (int n = kLaneCount / 2; n > 0; n /= 2) {
      for (int i = 0; i < n; ++i) {
        a.v[i] += a.v[i + n];
      }
    }
    return a.v[0];
  }
  static float max_lane(F a) {
    float max = a.v[0];
    for (const float x : a.v) {
      max = x > max ? x : max;
    }
    return max;
  }

  // ---- i32
  static I set1_int(int32_t x) {
    return each<I>([&](int) { return x; });
  }
  static I load_ints(const std::byte* p) {
    I a;
    std::memcpy(a.v, p, sizeof a.v);
    return a;
  }
  static void store_ints(std::byte* p, I a) {
    std::memcpy(p, a.v, sizeof a.v);
  }
  // 16 unsigned numbers of 8 or 16 bits.
  static I load_u8_ints(const std::byte* p) {
    return each<I>([&](int i) { return static_cast<int32_t>(p[i]); });
  }
  static I load_u16_ints(const std::byte* p) {
    return each<I>([&](int i) { return int32_t{load_u16(p + 2 * i)}; });
  }
  template <int n>
  static I low_bits(I a) {
    return each<I>([&](int i) { return a.v[i] & ((1 << n) - 1); });
  }
  // Two i16 a lane, the first one low.
  static I pair(I first, I second) {
    return each<I>([&](int i) {
      return static_cast<int32_t>(
          (static_cast<uint32_t>(first.v[i]) & 0xffff) |
          static_cast<uint32_t>(second.v[i]) << 16);
    });
  }
  static I add_ints(I a, I b) {
    return each<I>([&](int i) { return a.v[i] + b.v[i]; });
  }
  static I sub_ints(I a, I b) {
    return each<I>([&](int i) { return a.v[i] - b.v[i]; });
  }
  template <int n>
  static I shift_left(I a) {
    return each<I>([&](int i) { return a.v[i] * (1 << n); });
  }
  template <int n>
  static I shift_right(I a) { // keeps the sign
    return each<I>([&](int i) { return a.v[i] >> n; });
  }
  static int32_t sum_ints(I a) {
    int32_t total = 0;
    for (const int32_t x : a.v) {
      total += x;
    }
    return total;
  }
  static F to_float(I a) {
    return each<F>([&](int i) { return static_cast<float>(a.v[i]); });
  }
  // To the nearest, ties to even. What is not near an int32 is of no meaning.
  static I round(F a) {
    constexpr float kFar = 1 << 24;
    return each<I>([&](int i) {
      const float x = a.v[i] > kFar ? kFar : a.v[i] > -kFar ? a.v[i] : -kFar;
      return static_cast<int32_t>(std::nearbyint(x));
    });
  }
  // The whole number that is nearest, as round() has it.
  static F whole(F a) {
    return to_float(round(a));
  }
  // a * 2^n for whole -126 <= n <= 127.
  static F scale(F a, F n) {
    const I exponents = round(n);
    return each<F>([&](int i) {
      const auto bits = static_cast<uint32_t>(exponents.v[i] + 127) << 23;
      return a.v[i] * std::bit_cast<float>(bits);
    });
  }
  static void store_bytes(int8_t* p, I a) {
    for (int i = 0; i < kLaneCount; ++i) {
      p[i] = static_cast<int8_t>(a.v[i]);
    }
  }
  static void store_i16(int16_t* p, I a) {
    for (int i = 0; i < kLaneCount; ++i) {
      p[i] = static_cast<int16_t>(a.v[i]);
    }
  }

  // ---- Bytes
  static B load_bytes(const std::byte* p) {
    B b;
    std::memcpy(b.v, p, sizeof b.v);
    return b;
  }
  // (byte >> shift) & mask
  template <int shift, int mask>
  static B bits(B a) {
    for (uint8_t& x : a.v) {
      x = static_cast<uint8_t>(x >> shift & mask);
    }
    return a;
  }
  // table[byte]; they are below 16.
  static B look_up(B a, const uint8_t (&table)[16]) {
    for (uint8_t& x : a.v) {
      x = table[x];
    }
    return a;
  }
  // low | high << shift, which fits a byte.
  template <int shift>
  static B join(B low, B high) {
    for (int i = 0; i < 4 * kLaneCount; ++i) {
      low.v[i] = static_cast<uint8_t>(low.v[i] | high.v[i] << shift);
    }
    return low;
  }
  // Each lane of `sum` plus its 4 unsigned bytes of `w`, of kBits bits, times
  // those of x, signed and at least -127.
  template <int kBits>
  static I dot(I sum, B w, I x) {
    int8_t signed_bytes[4 * kLaneCount];
    std::memcpy(signed_bytes, x.v, sizeof signed_bytes);
    return each<I>([&](int i) {
      int32_t lane = sum.v[i];
      for (int j = 4 * i; j < 4 * i + 4; ++j) {
        lane += w.v[j] * signed_bytes[j];
      }
      return lane;
    });
  }
  // Each lane of `sum` plus its 2 i16 of a times those of b, all at least
  // -32767.
  static I dot_pairs(I sum, I a, I b) {
    int16_t left[2 * kLaneCount];
    int16_t right[2 * kLaneCount];
    std::memcpy(left, a.v, sizeof left);
    std::memcpy(right, b.v, sizeof right);
    return each<I>([&](int i) {
      return sum.v[i] + left[2 * i] * right[2 * i] +
          left[2 * i + 1] * right[2 * i + 1];
    });
  }
};

} // namespace
} // namespace ingle

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
