// AVX-512 with VNNI: one register is the 16 lanes. See simd_portable.h for
// what each function means.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace ingle {
namespace {

struct Avx512Simd {
  static constexpr int kTileTokens = 6;
  static constexpr int kPanels = 2;
  static constexpr int kQueryRows = 6;
  static constexpr int kAttentionLanes = 4;
  static constexpr int kDeltaPanels = 4;

  using F = __m512;
  using I = __m512i;
  using B = __m512i;

  // ---- f32
  static F set1(float x) {
    return _mm512_set1_ps(x);
  }
  static F load(const float* p) {
    return _mm512_loadu_ps(p);
  }
  static void store(float* p, F a) {
    _mm512_storeu_ps(p, a);
  }
  static F load_unaligned(const std::byte* p) {
    return _mm512_loadu_ps(p);
  }
  static F load_f16(const std::byte* p) {
    return _mm512_cvtph_ps(half_register(p));
  }
  static void store_f16(std::byte* p, F a) {
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(p),
        _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }
  static F load_bf16(const std::byte* p) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(half_register(p)), 16));
  }
  static F load_e8m0(const std::byte* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(load_u8_ints(p), 23));
  }
  static F add(F a, F b) {
    return _mm512_add_ps(a, b);
  }
  static F sub(F a, F b) {
    return _mm512_sub_ps(a, b);
  }
  static F mul(F a, F b) {
    return _mm512_mul_ps(a, b);
  }
  static F div(F a, F b) {
    return _mm512_div_ps(a, b);
  }
  static F fma(F a, F b, F c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  static F max(F a, F b) {
    return _mm512_max_ps(a, b);
  }
  static F min(F a, F b) {
    return _mm512_min_ps(a, b);
  }
  static F abs(F a) {
    return _mm512_abs_ps(a);
  }
  static F copy_sign(F a, F sign) {
    const __m512 mask = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(mask, a), _mm512_and_ps(mask, sign));
  }
  static F keep_lanes(F a, int begin, int end, float other) {
    const uint32_t mask = below(end) & ~below(begin);
    return _mm512_mask_mov_ps(
        _mm512_set1_ps(other), static_cast<__mmask16>(mask), a);
  }
  static uint32_t at_least(F a, F b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
  }
  static F where_at_least(F a, F b, F v) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ), v);
  }
  static float sum(F a) {
    const __m256 eight =
        _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_add_ps(
        _mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float max_lane(F a) {
    return _mm512_reduce_max_ps(a);
  }

  // ---- i32
  static I set1_int(int32_t x) {
    return _mm512_set1_epi32(x);
  }
  static I load_ints(const std::byte* p) {
    return _mm512_loadu_si512(p);
  }
  static void store_ints(std::byte* p, I a) {
    _mm512_storeu_si512(p, a);
  }
  static I load_u8_ints(const std::byte* p) {
    return _mm512_cvtepu8_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I load_u16_ints(const std::byte* p) {
    return _mm512_cvtepu16_epi32(half_register(p));
  }
  template <int n>
  static I low_bits(I a) {
    return _mm512_and_si512(a, _mm512_set1_epi32((1 << n) - 1));
  }
  static I pair(I first, I second) {
    return _mm512_mask_mov_epi16(
        first, 0xaaaaaaaa, _mm512_slli_epi32(second, 16));
  }
  static I add_ints(I a, I b) {
    return _mm512_add_epi32(a, b);
  }
  static I sub_ints(I a, I b) {
    return _mm512_sub_epi32(a, b);
  }
  template <int n>
  static I shift_left(I a) {
    return _mm512_slli_epi32(a, n);
  }
  template <int n>
  static I shift_right(I a) {
    return _mm512_srai_epi32(a, n);
  }
  static int32_t sum_ints(I a) {
    return _mm512_reduce_add_epi32(a);
  }
  static F to_float(I a) {
    return _mm512_cvtepi32_ps(a);
  }
  static I round(F a) {
    return _mm512_cvtps_epi32(a);
  }
  static F whole(F a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT);
  }
  static F scale(F a, F n) {
    return _mm512_scalef_ps(a, n);
  }
  static void store_bytes(int8_t* p, I a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
  }
  static void store_i16(int16_t* p, I a) {
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a));
  }

  // ---- Bytes
  static B load_bytes(const std::byte* p) {
    return _mm512_loadu_si512(p);
  }
  template <int shift, int mask>
  static B bits(B a) {
    if constexpr (shift != 0) {
      a = _mm512_srli_epi16(a, shift);
    }
    return _mm512_and_si512(a, _mm512_set1_epi8(mask));
  }
  static B look_up(B a, const uint8_t (&table)[16]) {
    const __m128i values =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), a);
  }
  template <int shift>
  static B join(B low, B high) {
    return _mm512_or_si512(low, _mm512_slli_epi16(high, shift));
  }
  template <int kBits>
  static I dot(I sum, B w, I x) {
    return _mm512_dpbusd_epi32(sum, w, x);
  }
  static I dot_pairs(I sum, I a, I b) {
    return _mm512_dpwssd_epi32(sum, a, b);
  }

 private:
  static __m256i half_register(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  // A bit for each lane below n.
  static uint32_t below(int n) {
    return n <= 0 ? 0 : n >= 16 ? 0xffff : (1u << n) - 1;
  }
};

} // namespace
} // namespace ingle
