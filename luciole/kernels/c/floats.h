/* What formulas on floats are made of, without a library. */
#ifndef LUC_FLOATS_H
#define LUC_FLOATS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t luc_bits_of(float x)
{
    uint32_t bits;
    (void)memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float luc_of_bits(uint32_t bits)
{
    float x;
    (void)memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float luc_magnitude(float x)
{
    return luc_of_bits(luc_bits_of(x) & 0x7fffffff);
}

/* x y + z: rounded once where the compiler makes one instruction of it. */
static inline float luc_times_plus(float x, float y, float z)
{
    return x * y + z;
}

/* The power of two that a number begins with. */
static inline float luc_power_in(float x)
{
    return luc_of_bits(luc_bits_of(x) & 0x7f800000);
}

/* x 2^n, rounded once, of n + 254 in the lowest bits of another number: by two powers of two. */
static inline float luc_times_power(float x, float shifted)
{
    uint32_t bits = luc_bits_of(shifted), half = bits >> 1;
    return x * luc_of_bits(half << 23) * luc_of_bits((bits - half) << 23);
}

/* The n of x = m 2^n with m from root to 2 root. */
static inline int32_t luc_exponent_above(float x, float root)
{
    return (int32_t)(luc_bits_of(x) - luc_bits_of(root)) >> 23;
}

static inline float luc_exponent(float x, float root)
{
    return (float)luc_exponent_above(x, root);
}

/* The m of it. */
static inline float luc_mantissa(float x, float root)
{
    return luc_of_bits(luc_bits_of(x) - ((uint32_t)luc_exponent_above(x, root) << 23));
}

/* The square root, correctly rounded, bit by bit where there is no instruction; that of -0 is -0. */
static float luc_root(float x)
{
    if (x < 0.0f) { return luc_of_bits(0x7fc00000); } /* machines differ in its sign */
#if defined(__GNUC__) && defined(__aarch64__)
    __asm__("fsqrt %s0, %s0" : "+w"(x));
    return x;
#elif defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & 4)
    __asm__("vsqrt.f32 %0, %0" : "+t"(x));
    return x;
#elif defined(__GNUC__) && defined(__SSE__)
    __asm__("sqrtss %0, %0" : "+x"(x));
    return x;
#else
    uint32_t fraction = luc_bits_of(x) & 0x7fffff, root = 0, rest = 0, odd;
    int32_t exponent = (int32_t)(luc_bits_of(x) >> 23) - 127;
    if (!(x > 0.0f) || exponent == 128) { return x; }
    if (exponent == -127) { /* a denormal */
        for (exponent++; fraction < 0x800000; exponent--) { fraction <<= 1; }
    }
    odd = (uint32_t)exponent & 1;
    fraction = (fraction | 0x800000) << (7 + odd);
    for (int k = 0; k < 25; k++, fraction <<= 2) { /* 24 bits, and one to round by */
        rest = rest << 2 | fraction >> 30;
        root <<= 1;
        if (rest > 2 * root) {
            rest -= 2 * root + 1;
            root++;
        }
    }
    return luc_of_bits(((uint32_t)((exponent - (int32_t)odd) / 2 + 126) << 23) + ((root + 1) >> 1));
#endif
}

#endif
