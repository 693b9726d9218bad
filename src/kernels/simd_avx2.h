// AVX2 with FMA and F16C: two registers are the 16 lanes. See simd_portable.h
// for what each function means.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace ingle {
namespace {

struct Avx2Simd {
  static constexpr int kTileTokens = 2;
  static constexpr int kPanels = 1;
  static constexpr int kQueryRows = 4;
  static constexpr int kAttentionLanes = 1;
  static constexpr int kDeltaPanels = 2;

  struct F {
    __m256 low;
    __m256 high;
  };
  struct I {
    __m256i low;
    __m256i high;
  };
  using B = I;

  // ---- f32
  static F set1(float x) {
    return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
  }
  static F load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  static void store(float* p, F a) {
    _mm256_storeu_ps(p, a.low);
    _mm256_storeu_ps(p + 8, a.high);
  }
  static F load_unaligned(const std::byte* p) {
    return load(reinterpret_cast<const float*>(p));
  }
  static F load_f16(const std::byte* p) {
    return {
        _mm256_cvtph_ps(eight_halves(p)),
        _mm256_cvtph_ps(eight_halves(p + 16))};
  }
  static void store_f16(std::byte* p, F a) {
    store_eight_halves(p, a.low);
    store_eight_halves(p + 16, a.high);
  }
  static F load_bf16(const std::byte* p) {
    return {widen_bf16(eight_halves(p)), widen_bf16(eight_halves(p + 16))};
  }
  static F load_e8m0(const std::byte* p) {
    const I bits = shift_left<23>(load_u8_ints(p));
    return {_mm256_castsi256_ps(bits.low), _mm256_castsi256_ps(bits.high)};
  }
  static F add(F a, F b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static F sub(F a, F b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  static F mul(F a, F b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static F div(F a, F b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static F fma(F a, F b, F c) {
    return {
        _mm256_fmadd_ps(a.low, b.low, c.low),
        _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static F max(F a, F b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static F min(F a, F b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  static F abs(F a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
  }
  static F copy_sign(F a, F sign) {
    const __m256 mask = _mm256_set1_ps(-0.0f);
    return {
        _mm256_or_ps(
            _mm256_andnot_ps(mask, a.low), _mm256_and_ps(mask, sign.low)),
        _mm256_or_ps(
            _mm256_andnot_ps(mask, a.high), _mm256_and_ps(mask, sign.high))};
  }
  static F keep_lanes(F a, int begin, int end, float other) {
    return {
        keep_eight(a.low, begin, end, other),
        keep_eight(a.high, begin - 8, end - 8, other)};
  }
  static uint32_t at_least(F a, F b) {
    const int low = _mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_GE_OQ));
    const int high =
        _mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_GE_OQ));
    return static_cast<uint32_t>(low | high << 8);
  }
  static F where_at_least(F a, F b, F v) {
    return {
        _mm256_and_ps(_mm256_cmp_ps(a.low, b.low, _CMP_GE_OQ), v.low),
        _mm256_and_ps(_mm256_cmp_ps(a.high, b.high, _CMP_GE_OQ), v.high)};
  }
  static float sum(F a) {
    const __m256 eight = _mm256_add_ps(a.low, a.high);
    const __m128 four = _mm_add_ps(
        _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float max_lane(F a) {
    const __m256 eight = _mm256_max_ps(a.low, a.high);
    const __m128 four = _mm_max_ps(
        _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  // ---- i32
  static I set1_int(int32_t x) {
    return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
  }
  static I load_ints(const std::byte* p) {
    return {load_register(p), load_register(p + 32)};
  }
  static void store_ints(std::byte* p, I a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), a.high);
  }
  static I load_u8_ints(const std::byte* p) {
    const __m128i bytes = eight_halves(p);
    return {
        _mm256_cvtepu8_epi32(bytes),
        _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
  }
  static I load_u16_ints(const std::byte* p) {
    return {
        _mm256_cvtepu16_epi32(eight_halves(p)),
        _mm256_cvtepu16_epi32(eight_halves(p + 16))};
  }
  template <int n>
  static I low_bits(I a) {
    const __m256i mask = _mm256_set1_epi32((1 << n) - 1);
    return {_mm256_and_si256(a.low, mask), _mm256_and_si256(a.high, mask)};
  }
  static I pair(I first, I second) {
    const I high = shift_left<16>(second);
    return {
        _mm256_blend_epi16(first.low, high.low, 0xaa),
        _mm256_blend_epi16(first.high, high.high, 0xaa)};
  }
  static I add_ints(I a, I b) {
    return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
  }
  static I sub_ints(I a, I b) {
    return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
  }
  template <int n>
  static I shift_left(I a) {
    return {_mm256_slli_epi32(a.low, n), _mm256_slli_epi32(a.high, n)};
  }
  template <int n>
  static I shift_right(I a) {
    return {_mm256_srai_epi32(a.low, n), _mm256_srai_epi32(a.high, n)};
  }
  static int32_t sum_ints(I a) {
    const __m256i eight = _mm256_add_epi32(a.low, a.high);
    __m128i four = _mm_add_epi32(
        _mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(four) + _mm_extract_epi32(four, 1);
  }
  static F to_float(I a) {
    return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)};
  }
  static I round(F a) {
    return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)};
  }
  static F whole(F a) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {
        _mm256_round_ps(a.low, kNearest), _mm256_round_ps(a.high, kNearest)};
  }
  static F scale(F a, F n) {
    const I power = shift_left<23>(add_ints(round(n), set1_int(127)));
    return mul(
        a, {_mm256_castsi256_ps(power.low), _mm256_castsi256_ps(power.high)});
  }
  static void store_bytes(int8_t* p, I a) {
    const __m256i halves = sixteen_i16(a);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packs_epi16(
            _mm256_castsi256_si128(halves),
            _mm256_extracti128_si256(halves, 1)));
  }
  static void store_i16(int16_t* p, I a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), sixteen_i16(a));
  }

  // ---- Bytes
  static B load_bytes(const std::byte* p) {
    return load_ints(p);
  }
  template <int shift, int mask>
  static B bits(B a) {
    const __m256i m = _mm256_set1_epi8(mask);
    if constexpr (shift != 0) {
      a = {_mm256_srli_epi16(a.low, shift), _mm256_srli_epi16(a.high, shift)};
    }
    return {_mm256_and_si256(a.low, m), _mm256_and_si256(a.high, m)};
  }
  static B look_up(B a, const uint8_t (&table)[16]) {
    const __m256i values = _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    return {
        _mm256_shuffle_epi8(values, a.low),
        _mm256_shuffle_epi8(values, a.high)};
  }
  template <int shift>
  static B join(B low, B high) {
    return {
        _mm256_or_si256(low.low, _mm256_slli_epi16(high.low, shift)),
        _mm256_or_si256(low.high, _mm256_slli_epi16(high.high, shift))};
  }
  template <int kBits>
  static I dot(I sum, B w, I x) {
    return {
        dot_eight<kBits>(sum.low, w.low, x.low),
        dot_eight<kBits>(sum.high, w.high, x.high)};
  }
  static I dot_pairs(I sum, I a, I b) {
    return {
        _mm256_add_epi32(sum.low, _mm256_madd_epi16(a.low, b.low)),
        _mm256_add_epi32(sum.high, _mm256_madd_epi16(a.high, b.high))};
  }

 private:
  static __m256i load_register(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static __m128i eight_halves(const std::byte* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static void store_eight_halves(std::byte* p, __m256 a) {
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }
  static __m256 widen_bf16(__m128i halves) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  static __m256 keep_eight(__m256 a, int begin, int end, float other) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i kept = _mm256_andnot_si256(
        _mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane),
        _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
    return _mm256_blendv_ps(
        _mm256_set1_ps(other), a, _mm256_castsi256_ps(kept));
  }
  static __m256i sixteen_i16(I a) {
    // Packing interleaves the halves of its operands.
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(a.low, a.high), 0xd8);
  }
  // Sums of two products of a byte fit 16 bits up to 7 bits of weight.
  template <int kBits>
  static __m256i dot_eight(__m256i sum, __m256i w, __m256i x) {
    const __m256i ones = _mm256_set1_epi16(1);
    if constexpr (kBits < 8) {
      return _mm256_add_epi32(
          sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones));
    } else {
      const __m256i nibble = _mm256_set1_epi8(15);
      const __m256i low = _mm256_maddubs_epi16(_mm256_and_si256(w, nibble), x);
      const __m256i high = _mm256_maddubs_epi16(
          _mm256_and_si256(_mm256_srli_epi16(w, 4), nibble), x);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(low, ones));
      return _mm256_add_epi32(
          sum, _mm256_madd_epi16(high, _mm256_set1_epi16(16)));
    }
  }
};

} // namespace
} // namespace ingle
