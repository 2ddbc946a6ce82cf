/* Functions of fixed-point numbers with 16 bits, bit for bit those of gemmlowp: a number with i
 * integer bits is in units of 2^(i - 15).
 */
#ifndef LUC_FIXED_POINT_16_H
#define LUC_FIXED_POINT_16_H

#include "fixed_point.h"

/* A number between the limits of 16 bits. */
static inline int32_t luc_short(int32_t x)
{
    return x < -32768 ? -32768 : x > 32767 ? 32767 : x;
}

/* x y / 2^15, halves up: SaturatingRoundingDoublingHighMul of 16 bits. */
static inline int32_t luc_high_16(int32_t x, int32_t y)
{
    int32_t found = (x * y + (1 << 14)) >> 15;
    return found > 32767 ? 32767 : found;
}

/* e^x of -1/4 <= x < 0 without integer bits: a Taylor polynomial around -1/8. */
static int32_t luc_exp_near_zero_16(int32_t x)
{
    const int32_t constant = 28918, third = 10923;
    int32_t square, cube, terms;
    x = (int16_t)(x + (1 << 12));
    square = luc_high_16(x, x);
    cube = luc_high_16(square, x);
    terms = (int16_t)(luc_halved(luc_high_16(square, square), 2) + cube);
    terms = luc_halved((int16_t)(luc_high_16(terms, third) + square), 1);
    return luc_short(constant + luc_high_16((int16_t)(x + terms), constant));
}

/* e^-(2^k) for k from -2 to 4, without integer bits. */
static const int16_t luc_halvings_16[7] = {25520, 19875, 12055, 4435, 600, 11, 0};

/* e^x of x <= 0 with integer bits; the result has none. */
static int32_t luc_exp_16(int32_t x, int integer_bits)
{
    int fraction = 15 - integer_bits;
    int32_t quarter = (int32_t)1 << fraction >> 2, near, rest, result;
    if (x == 0) { return 32767; }
    if (integer_bits > 5 && x < -((int32_t)1 << (fraction + 5))) { return 0; }
    near = (x & (quarter - 1)) - quarter;
    result = luc_exp_near_zero_16(luc_short(near * ((int32_t)1 << integer_bits)));
    rest = near - x;
    for (int power = -2; power < 5 && power < integer_bits; power++) {
        if (rest & (int32_t)1 << (fraction + power)) {
            result = luc_high_16(result, luc_halvings_16[power + 2]);
        }
    }
    return result;
}

/* 2 / (1 + x) of 0 <= x < 1 with 2 integer bits: three steps of Newton's method. */
static int32_t luc_over_one_plus_16(int32_t x)
{
    int32_t half = (x + 32768) >> 1, found = 23130 + luc_high_16(half, -15420);
    for (int k = 0; k < 3; k++) {
        int32_t rest = (int16_t)((1 << 13) - luc_high_16(half, found));
        found = (int16_t)(found + luc_short(luc_high_16(found, rest) * 4));
    }
    return found;
}

/* 1 / (1 + e^-x) of x with 3 integer bits, without integer bits. */
static int32_t luc_logistic_16(int32_t x)
{
    int32_t found;
    if (x == 0) { return 1 << 14; }
    found = luc_short(luc_over_one_plus_16(luc_exp_16((int16_t)(x < 0 ? x : -x), 3)) * 2);
    return x > 0 ? found : 32767 - found;
}

/* tanh(x) of x with integer bits, without integer bits. */
static int32_t luc_tanh_16(int32_t x, int integer_bits)
{
    int32_t found;
    if (x == 0) { return 0; }
    found = luc_over_one_plus_16(luc_exp_16((int16_t)(x < 0 ? x : -x), integer_bits + 1));
    found = luc_short((int16_t)(found - (1 << 13)) * 4);
    return x > 0 ? found : (int16_t)-found;
}

#endif
