/* Instructions of Arm processors with the DSP extension, of two halfwords each. */
#ifndef LUC_DSP_H
#define LUC_DSP_H

#include "codes.h"
#include <string.h>

#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
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
static inline uint32_t luc_load(const void *from)
{
    uint32_t found;
    (void)memcpy(&found, from, sizeof found);
    return found;
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
static inline int64_t luc_add_both_int16_long(uint32_t x, uint32_t y, int64_t sum)
{
    __asm__ volatile("smlald %Q0, %R0, %1, %2" : "+r"(sum) : "r"(x), "r"(y));
    return sum;
}
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
