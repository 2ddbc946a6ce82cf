/* Words of 32 bits side by side, as many as a machine's registers hold: one, or a vector of 4, 8 or
 * 16, which is for gcc and clang. What is computed is the same.
 */
#ifndef LUC_VECTORS_H
#define LUC_VECTORS_H

#include <stdint.h>
#include <string.h>

#ifndef LUC_WORDS
#define LUC_WORDS 1
#endif

#if LUC_WORDS > 1
#define LUC_VECTOR(size) __attribute__((vector_size((size) * LUC_WORDS), aligned(size), may_alias))
typedef uint32_t luc_bits LUC_VECTOR(4);
typedef int32_t luc_sums LUC_VECTOR(4);
typedef uint16_t luc_halves LUC_VECTOR(2);
typedef uint64_t luc_longs __attribute__((vector_size(4 * LUC_WORDS), aligned(4), may_alias));
#define LUC_ZERO {0}
#define LUC_WIDE(from) __builtin_convertvector(*(const luc_halves *)(from), luc_bits)
#else
typedef uint32_t luc_bits;
typedef int32_t luc_sums;
#define LUC_ZERO 0
#define LUC_WIDE(from) ((uint32_t)*(from))
#endif

/* Sums of products in 64 bits. */
#if LUC_WORDS > 1
struct luc_products {
    luc_longs even;
    luc_longs odd;
};
#else
struct luc_products {
    int64_t sum;
};
#endif

/* Whether the compiler's own vector instructions are there. */
#if defined(__SSE2__)
#include <immintrin.h>
#define LUC_INTRINSICS 1
#elif defined(__aarch64__)
#include <arm_neon.h>
#define LUC_INTRINSICS 1
#else
#define LUC_INTRINSICS 0
#endif

/* Which of 32 bytes are a number: bit k is byte k's. */
static inline uint32_t luc_equal_32(const uint8_t *x, unsigned number)
{
#if LUC_INTRINSICS && defined(__AVX2__)
    __m256i same = _mm256_set1_epi8((char)number);
    same = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(const void *)x), same);
    return (uint32_t)_mm256_movemask_epi8(same);
#elif LUC_INTRINSICS && defined(__SSE2__)
    __m128i to = _mm_set1_epi8((char)number), low, high;
    low = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)x), to);
    high = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)(x + 16)), to);
    return (uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16;
#elif LUC_INTRINSICS && defined(__aarch64__)
    static const uint8_t place[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t to = vdupq_n_u8((uint8_t)number), each = vld1q_u8(place), low, high;
    low = vandq_u8(vceqq_u8(vld1q_u8(x), to), each);
    high = vandq_u8(vceqq_u8(vld1q_u8(x + 16), to), each);
    low = vpaddq_u8(low, high);
    low = vpaddq_u8(low, low);
    low = vpaddq_u8(low, low);
    return vgetq_lane_u32(vreinterpretq_u32_u8(low), 0);
#else
    uint32_t found = 0;
    for (unsigned k = 0; k < 32; k++) { found |= (uint32_t)(x[k] == number) << k; }
    return found;
#endif
}

/* Which of up to 32 of `count` bytes, from byte k on, are a number: bit 0 is byte k's. */
static inline uint32_t luc_equal(const uint8_t *x, unsigned count, unsigned k, unsigned number)
{
    uint32_t found = 0;
    if (count - k >= 32) { return luc_equal_32(x + k, number); }
    if (count >= 32) { return luc_equal_32(x + count - 32, number) >> (32 - (count - k)); }
    for (; k < count; k++) { found |= (uint32_t)(x[k] == number) << k; }
    return found;
}

/* Multiplies lower halves, as signed numbers: x becomes the product. */
static inline void luc_multiply(luc_longs *x, const luc_longs *y)
{
#if LUC_INTRINSICS && defined(__AVX512F__) && LUC_WORDS == 16
    *x = (luc_longs)_mm512_mul_epi32((__m512i)*x, (__m512i)*y);
#elif LUC_INTRINSICS && defined(__AVX2__) && LUC_WORDS == 8
    *x = (luc_longs)_mm256_mul_epi32((__m256i)*x, (__m256i)*y);
#elif LUC_INTRINSICS && defined(__SSE4_1__) && LUC_WORDS == 4
    *x = (luc_longs)_mm_mul_epi32((__m128i)*x, (__m128i)*y);
#elif LUC_INTRINSICS && defined(__aarch64__) && LUC_WORDS == 4
    *x = (luc_longs)vmull_s32(vmovn_s64((int64x2_t)*x), vmovn_s64((int64x2_t)*y));
#else
    for (unsigned e = 0; e < LUC_WORDS / 2; e++) {
        (*x)[e] = (uint64_t)((int64_t)(int32_t)(uint32_t)(*x)[e] * (int32_t)(uint32_t)(*y)[e]);
    }
#endif
}

/* Writes where `count` bytes are a number, and up to 32 numbers more; returns the end. */
static inline uint16_t *luc_places(const uint8_t *x, unsigned count, unsigned number, uint16_t *to)
{
    for (unsigned k = 0; k < count; k += 32) {
        uint32_t found = luc_equal(x, count, k, number);
        uint16_t *end = to + __builtin_popcount(found);
#if LUC_INTRINSICS && defined(__AVX512VBMI2__)
        static const uint16_t numbers[32] = {
            0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
            16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
        };
        __m512i from = _mm512_loadu_si512(numbers);
        from = _mm512_add_epi16(_mm512_set1_epi16((short)k), from);
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi16(found, from));
#else
        do {
            for (unsigned i = 0; i < 4; i++, found &= found - 1) {
                to[i] = (uint16_t)(k + (found ? (unsigned)__builtin_ctz(found) : 0u));
            }
            to += 4;
        } while (to < end);
#endif
        to = end;
    }
    return to;
}

/* Counts the ones of each word: x becomes the number. */
static inline void luc_ones(luc_bits *x)
{
#if LUC_INTRINSICS && defined(__AVX512VPOPCNTDQ__) && LUC_WORDS == 16
    *x = (luc_bits)_mm512_popcnt_epi32((__m512i)*x);
#else
    luc_bits y = *x - (*x >> 1 & 0x55555555u);
    y = (y & 0x33333333u) + (y >> 2 & 0x33333333u);
    y = (y + (y >> 4)) & 0x0f0f0f0fu;
    *x = y * 0x01010101u >> 24;
#endif
}

/* Adds the products of signed numbers. */
static inline void luc_add_products(struct luc_products *to, const luc_sums *x, const int32_t *y)
{
#if LUC_WORDS > 1
    luc_longs even = (luc_longs)*x, odd = even >> 32, by = *(const luc_longs *)(const void *)y;
    luc_multiply(&even, &by);
    by >>= 32;
    luc_multiply(&odd, &by);
    to->even += even;
    to->odd += odd;
#else
    to->sum += (int64_t)*x * *y;
#endif
}

/* The upper halves of sums. */
static inline void luc_upper_halves(const struct luc_products *sums, luc_sums *to)
{
#if LUC_WORDS > 1
    *to = (luc_sums)(sums->even >> 32 | (sums->odd & 0xffffffff00000000u));
#else
    *to = (int32_t)(sums->sum >> 32);
#endif
}

#endif
