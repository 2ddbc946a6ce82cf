/* Instructions of Arm processors with the DSP extension, of two halfwords each. */
#ifndef LUC_DSP_H
#define LUC_DSP_H

#include "codes.h"
#include <string.h>

/* In Arm state the compiler's registers may be none that ldrd takes. */
#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP && defined(__thumb2__)
#define LUC_DSP 1
#else
#define LUC_DSP 0
#endif

#if LUC_DSP
/* Bytes 0 and 2, or 1 and 3, as signed halfwords. */
static inline uint32_t luc_even_bytes(uint32_t four)
{
    uint32_t found;
    __asm__("sxtb16 %0, %1" : "=r"(found) : "r"(four));
    return found;
}
static inline uint32_t luc_odd_bytes(uint32_t four)
{
    uint32_t found;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(found) : "r"(four));
    return found;
}
/* The same, each plus a halfword. */
static inline uint32_t luc_add_even_bytes(uint32_t both, uint32_t four)
{
    uint32_t found;
    __asm__("sxtab16 %0, %1, %2" : "=r"(found) : "r"(both), "r"(four));
    return found;
}
static inline uint32_t luc_add_odd_bytes(uint32_t both, uint32_t four)
{
    uint32_t found;
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(found) : "r"(both), "r"(four));
    return found;
}
/* The same of bytes without a sign. */
static inline uint32_t luc_add_even_unsigned(uint32_t both, uint32_t four)
{
    uint32_t found;
    __asm__("uxtab16 %0, %1, %2" : "=r"(found) : "r"(both), "r"(four));
    return found;
}
static inline uint32_t luc_add_odd_unsigned(uint32_t both, uint32_t four)
{
    uint32_t found;
    __asm__("uxtab16 %0, %1, %2, ror #8" : "=r"(found) : "r"(both), "r"(four));
    return found;
}
/* The upper halves of products, rounded, and a third number. */
static inline int32_t luc_add_upper(int32_t x, uint32_t y, int32_t sum)
{
    int32_t found;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(found) : "r"(x), "r"(y), "r"(sum));
    return found;
}
/* Adds the product of the lower, or of the upper halfwords. */
static inline int32_t luc_add_lower(uint32_t x, uint32_t y, int32_t sum)
{
    __asm__ volatile("smlabb %0, %1, %2, %0" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
}
static inline int32_t luc_add_higher(uint32_t x, uint32_t y, int32_t sum)
{
    __asm__ volatile("smlatt %0, %1, %2, %0" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
}
/* Sums that stay within 32 bits, and numbers that stay within those of an element. */
static inline int32_t luc_add_within(int32_t x, int32_t y)
{
    int32_t found;
    __asm__("qadd %0, %1, %2" : "=r"(found) : "r"(x), "r"(y));
    return found;
}
static inline uint32_t luc_load(const void *from)
{
    uint32_t found;
    (void)memcpy(&found, from, sizeof found);
    return found;
}
static inline void luc_put(void *to, uint32_t word)
{
    (void)memcpy(to, &word, sizeof word);
}
/* Two words, the first of them at a multiple of 4 bytes: the place behind them. */
static inline const int16_t *luc_load_two(const int16_t *from, uint32_t *first, uint32_t *second)
{
    __asm__ volatile("ldrd %0, %1, [%2], #8" : "=r"(*first), "=r"(*second), "+r"(from) : : "memory");
    return from;
}
#endif

#if LUC_DSP
/* Adds the products of both halfwords. */
static inline int32_t luc_add_both_int8(uint32_t x, uint32_t y, int32_t sum)
{
    __asm__ volatile("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(x), "r"(y)); /* in this order */
    return sum;
}
#endif

#if LUC_DSP
/* The nearest element. */
static inline int32_t luc_within_int8(int32_t x)
{
    __asm__("ssat %0, #8, %0" : "+r"(x));
    return x;
}
#endif

#if LUC_DSP
static inline int32_t luc_within_uint8(int32_t x)
{
    __asm__("usat %0, #8, %0" : "+r"(x));
    return x;
}
#endif

#if LUC_DSP
static inline int32_t luc_within_int16(int32_t x)
{
    __asm__("ssat %0, #16, %0" : "+r"(x));
    return x;
}
#endif

#if LUC_DSP
static inline int64_t luc_add_both_int16_long(uint32_t x, uint32_t y, int64_t sum)
{
    __asm__ volatile("smlald %Q0, %R0, %1, %2" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
}
#endif

/* Helium: vectors of Arm processors for microcontrollers. Programs begin with this, too. */
#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE
#include <arm_mve.h>
#endif

#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE
#define LUC_MVE 1
#else
#define LUC_MVE 0
#endif

/* Whether lists hold halfwords as bytes of words are spread to. */
#define LUC_IN_PAIRS (LUC_DSP && !LUC_MVE)

/* Whether loops are written out: not where programs shall be small. */
#if defined(__OPTIMIZE_SIZE__)
#define LUC_UNROLLED 0
#else
#define LUC_UNROLLED 1
#endif

/* Lets compilers forget what they know of a number, so that they compute multiples of it where they
 * are: an address does that for nothing, and there are few registers.
 */
#if LUC_DSP
#define LUC_UNKNOWN(number) __asm__("" : "+r"(number))
#else
#define LUC_UNKNOWN(number) (void)(number)
#endif

/* What is no call, however small programs shall be. */
#if defined(__GNUC__)
#define LUC_INSIDE inline __attribute__((always_inline))
#else
#define LUC_INSIDE inline
#endif

/* What is called, whatever is gained by more of it in one function: there are few registers. */
#if defined(__GNUC__)
#define LUC_APART __attribute__((noinline))
#else
#define LUC_APART
#endif

/* The same, and compiled without a look at its calls: GCC warns of what these never reach. */
#if defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__)
#define LUC_UNSEEN __attribute__((noipa))
#else
#define LUC_UNSEEN LUC_APART
#endif

#endif
