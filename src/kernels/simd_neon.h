// NEON with the dot product of Armv8.2: four registers are the 16 lanes. See
// simd_portable.h for what each function means.
#pragma once

#include <cstddef>
#include <cstdint>

#include <arm_neon.h>

namespace ingle {
namespace {

struct NeonSimd {
  // 16 of the 32 registers for sums, 4 for weights, the rest for what lies
  // between: with more tokens, sums spill.
  static constexpr int kTileTokens = 4;
  static constexpr int kPanels = 1;
  static constexpr int kQueryRows = 4;
  static constexpr int kAttentionLanes = 1;
  static constexpr int kDeltaPanels = 2;

  template <class Register>
  struct Four {
    Register a;
    Register b;
    Register c;
    Register d;
  };
  using F = Four<float32x4_t>;
  using I = Four<int32x4_t>;
  using B = Four<uint8x16_t>;

  // ---- f32
  static F set1(float x) {
    return all<F>(vdupq_n_f32(x));
  }
  static F load(const float* p) {
    return {
        vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
  }
  static void store(float* p, F x) {
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
  }
  static F load_unaligned(const std::byte* p) {
    return each<F>(
        [](auto x) { return vreinterpretq_f32_u8(x); }, load_bytes(p));
  }
  static F load_f16(const std::byte* p) {
    const float16x8_t low = vreinterpretq_f16_u8(load_register(p));
    const float16x8_t high = vreinterpretq_f16_u8(load_register(p + 16));
    return {
        vcvt_f32_f16(vget_low_f16(low)),
        vcvt_high_f32_f16(low),
        vcvt_f32_f16(vget_low_f16(high)),
        vcvt_high_f32_f16(high)};
  }
  static void store_f16(std::byte* p, F x) {
    store_halves(p, vcvt_high_f16_f32(vcvt_f16_f32(x.a), x.b));
    store_halves(p + 16, vcvt_high_f16_f32(vcvt_f16_f32(x.c), x.d));
  }
  static F load_bf16(const std::byte* p) {
    const uint16x8_t zero = vdupq_n_u16(0);
    const uint16x8_t low = vreinterpretq_u16_u8(load_register(p));
    const uint16x8_t high = vreinterpretq_u16_u8(load_register(p + 16));
    return {
        vreinterpretq_f32_u16(vzip1q_u16(zero, low)),
        vreinterpretq_f32_u16(vzip2q_u16(zero, low)),
        vreinterpretq_f32_u16(vzip1q_u16(zero, high)),
        vreinterpretq_f32_u16(vzip2q_u16(zero, high))};
  }
  static F load_e8m0(const std::byte* p) {
    return each<F>(
        [](auto x) { return vreinterpretq_f32_s32(x); },
        shift_left<23>(load_u8_ints(p)));
  }
  static F add(F x, F y) {
    return each<F>([](auto p, auto q) { return vaddq_f32(p, q); }, x, y);
  }
  static F sub(F x, F y) {
    return each<F>([](auto p, auto q) { return vsubq_f32(p, q); }, x, y);
  }
  static F mul(F x, F y) {
    return each<F>([](auto p, auto q) { return vmulq_f32(p, q); }, x, y);
  }
  static F div(F x, F y) {
    return each<F>([](auto p, auto q) { return vdivq_f32(p, q); }, x, y);
  }
  static F fma(F x, F y, F z) {
    return each<F>(
        [](auto p, auto q, auto r) { return vfmaq_f32(r, p, q); }, x, y, z);
  }
  static F max(F x, F y) {
    return each<F>([](auto p, auto q) { return vmaxq_f32(p, q); }, x, y);
  }
  static F min(F x, F y) {
    return each<F>([](auto p, auto q) { return vminq_f32(p, q); }, x, y);
  }
  static F abs(F x) {
    return each<F>([](auto p) { return vabsq_f32(p); }, x);
  }
  static F copy_sign(F x, F sign) {
    const uint32x4_t mask = vdupq_n_u32(1u << 31);
    return each<F>(
        [&](auto p, auto s) { return vbslq_f32(mask, s, p); }, x, sign);
  }
  static F keep_lanes(F x, int begin, int end, float other) {
    const I lanes = {
        {0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}};
    return each<F>(
        [&](auto p, auto lane) {
          const uint32x4_t kept = vandq_u32(
              vcgeq_s32(lane, vdupq_n_s32(begin)),
              vcltq_s32(lane, vdupq_n_s32(end)));
          return vbslq_f32(kept, p, vdupq_n_f32(other));
        },
        x,
        lanes);
  }
  static uint32_t at_least(F x, F y) {
    using Bits = Four<uint32x4_t>;
    const Bits bits = {
        {1, 2, 4, 8},
        {1 << 4, 2 << 4, 4 << 4, 8 << 4},
        {1 << 8, 2 << 8, 4 << 8, 8 << 8},
        {1 << 12, 2 << 12, 4 << 12, 8 << 12}};
    const auto lanes = each<Bits>(
        [](auto p, auto q, auto bit) {
          return vandq_u32(vcgeq_f32(p, q), bit);
        },
        x,
        y,
        bits);
    return vaddvq_u32(
        vorrq_u32(vorrq_u32(lanes.a, lanes.b), vorrq_u32(lanes.c, lanes.d)));
  }
  static F where_at_least(F x, F y, F v) {
    return each<F>(
        [](auto p, auto q, auto kept) {
          return vbslq_f32(vcgeq_f32(p, q), kept, vdupq_n_f32(0));
        },
        x,
        y,
        v);
  }
  static float sum(F x) {
    const float32x4_t four =
        vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    return vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
  }
  static float max_lane(F x) {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.a, x.b), vmaxq_f32(x.c, x.d)));
  }

  // ---- i32
  static I set1_int(int32_t x) {
    return all<I>(vdupq_n_s32(x));
  }
  static I load_ints(const std::byte* p) {
    return each<I>(
        [](auto x) { return vreinterpretq_s32_u8(x); }, load_bytes(p));
  }
  static void store_ints(std::byte* p, I x) {
    const auto to = reinterpret_cast<uint8_t*>(p);
    vst1q_u8(to, vreinterpretq_u8_s32(x.a));
    vst1q_u8(to + 16, vreinterpretq_u8_s32(x.b));
    vst1q_u8(to + 32, vreinterpretq_u8_s32(x.c));
    vst1q_u8(to + 48, vreinterpretq_u8_s32(x.d));
  }
  static I load_u8_ints(const std::byte* p) {
    const uint8x16_t bytes = load_register(p);
    return widen(vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
  }
  static I load_u16_ints(const std::byte* p) {
    return widen(
        vreinterpretq_u16_u8(load_register(p)),
        vreinterpretq_u16_u8(load_register(p + 16)));
  }
  template <int n>
  static I low_bits(I x) {
    return each<I>(
        [](auto p) { return vandq_s32(p, vdupq_n_s32((1 << n) - 1)); }, x);
  }
  static I pair(I first, I second) {
    return each<I>(
        [](auto p, auto q) { return vsliq_n_s32(p, q, 16); }, first, second);
  }
  static I add_ints(I x, I y) {
    return each<I>([](auto p, auto q) { return vaddq_s32(p, q); }, x, y);
  }
  static I sub_ints(I x, I y) {
    return each<I>([](auto p, auto q) { return vsubq_s32(p, q); }, x, y);
  }
  template <int n>
  static I shift_left(I x) {
    return each<I>([](auto p) { return vshlq_n_s32(p, n); }, x);
  }
  template <int n>
  static I shift_right(I x) {
    return each<I>([](auto p) { return vshrq_n_s32(p, n); }, x);
  }
  static int32_t sum_ints(I x) {
    return vaddvq_s32(vaddq_s32(vaddq_s32(x.a, x.b), vaddq_s32(x.c, x.d)));
  }
  static F to_float(I x) {
    return each<F>([](auto p) { return vcvtq_f32_s32(p); }, x);
  }
  static I round(F x) {
    return each<I>([](auto p) { return vcvtnq_s32_f32(p); }, x);
  }
  static F whole(F x) {
    return each<F>([](auto p) { return vrndnq_f32(p); }, x);
  }
  static F scale(F x, F n) {
    const I power = shift_left<23>(add_ints(round(n), set1_int(127)));
    return mul(
        x, each<F>([](auto p) { return vreinterpretq_f32_s32(p); }, power));
  }
  static void store_bytes(int8_t* p, I x) {
    vst1q_s8(
        p,
        vuzp1q_s8(
            vreinterpretq_s8_s16(low_halves(x.a, x.b)),
            vreinterpretq_s8_s16(low_halves(x.c, x.d))));
  }
  static void store_i16(int16_t* p, I x) {
    vst1q_s16(p, low_halves(x.a, x.b));
    vst1q_s16(p + 8, low_halves(x.c, x.d));
  }

  // ---- Bytes
  static B load_bytes(const std::byte* p) {
    return {
        load_register(p),
        load_register(p + 16),
        load_register(p + 32),
        load_register(p + 48)};
  }
  template <int shift, int mask>
  static B bits(B x) {
    if constexpr (shift != 0) {
      x = each<B>([](auto p) { return vshrq_n_u8(p, shift); }, x);
    }
    if constexpr (mask == 0xff >> shift) {
      return x; // zeros were shifted in
    } else {
      return each<B>([](auto p) { return vandq_u8(p, vdupq_n_u8(mask)); }, x);
    }
  }
  static B look_up(B x, const uint8_t (&table)[16]) {
    const uint8x16_t values = vld1q_u8(table);
    return each<B>([&](auto p) { return vqtbl1q_u8(values, p); }, x);
  }
  template <int shift>
  static B join(B low, B high) {
    return each<B>(
        [](auto l, auto h) { return vsliq_n_u8(l, h, shift); }, low, high);
  }
  template <int kBits>
  static I dot(I sum, B w, I x) {
    return each<I>(
        [](auto s, auto bytes, auto p) {
          return dot_register<kBits>(s, bytes, vreinterpretq_s8_s32(p));
        },
        sum,
        w,
        x);
  }
  static I dot_pairs(I sum, I x, I y) {
    add_pairs(sum.a, sum.b, x.a, x.b, y.a, y.b);
    add_pairs(sum.c, sum.d, x.c, x.d, y.c, y.d);
    return sum;
  }

 private:
  template <class To, class Register>
  static To all(Register x) {
    return {x, x, x, x};
  }
  template <class To, class Fn, class... X>
  static To each(Fn&& fn, X... x) {
    return {fn(x.a...), fn(x.b...), fn(x.c...), fn(x.d...)};
  }
  static uint8x16_t load_register(const std::byte* p) {
    return vld1q_u8(reinterpret_cast<const uint8_t*>(p));
  }
  static void store_halves(std::byte* p, float16x8_t x) {
    vst1q_u8(reinterpret_cast<uint8_t*>(p), vreinterpretq_u8_f16(x));
  }
  static I widen(uint16x8_t low, uint16x8_t high) {
    return {
        vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))),
        vreinterpretq_s32_u32(vmovl_high_u16(low)),
        vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))),
        vreinterpretq_s32_u32(vmovl_high_u16(high))};
  }
  // Of each lane of x, then of y, the low 16 bits.
  static int16x8_t low_halves(int32x4_t x, int32x4_t y) {
    return vuzp1q_s16(vreinterpretq_s16_s32(x), vreinterpretq_s16_s32(y));
  }
  static int16x8_t high_halves(int32x4_t x, int32x4_t y) {
    return vuzp2q_s16(vreinterpretq_s16_s32(x), vreinterpretq_s16_s32(y));
  }
  // The instruction multiplies signed bytes, so one of 8 bits is made 128
  // less; what that takes away depends on x alone.
  template <int kBits>
  static int32x4_t dot_register(int32x4_t sum, uint8x16_t w, int8x16_t x) {
    if constexpr (kBits < 8) {
      return vdotq_s32(sum, vreinterpretq_s8_u8(w), x);
    } else {
      const uint8x16_t top = vdupq_n_u8(128);
      const int32x4_t taken =
          vdotq_s32(vdupq_n_s32(0), vreinterpretq_s8_u8(top), x);
      const int8x16_t less = vreinterpretq_s8_u8(veorq_u8(w, top));
      return vsubq_s32(vdotq_s32(sum, less, x), taken);
    }
  }
  // The products of the low elements of each lane, then those of the high.
  // Side by side, the two of a lane would have to be brought together.
  static void add_pairs(
      int32x4_t& low,
      int32x4_t& high,
      int32x4_t x_low,
      int32x4_t x_high,
      int32x4_t y_low,
      int32x4_t y_high) {
    const auto add = [&](int16x8_t x, int16x8_t y) {
      low = vmlal_s16(low, vget_low_s16(x), vget_low_s16(y));
      high = vmlal_high_s16(high, x, y);
    };
    add(low_halves(x_low, x_high), low_halves(y_low, y_high));
    add(high_halves(x_low, x_high), high_halves(y_low, y_high));
  }
};

} // namespace
} // namespace ingle
