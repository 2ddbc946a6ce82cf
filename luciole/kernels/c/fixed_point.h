/* TFLite's arithmetic of quantized tensors, bit for bit. */
#ifndef LUC_FIXED_POINT_H
#define LUC_FIXED_POINT_H

#include "codes.h"
#include "dsp.h"

/* x y / 2^31, halves up, of a y above 0: gemmlowp's SaturatingRoundingDoublingHighMul. Twice such a y
 * is, as a signed number of 32 bits, 2^32 too small where that is below 0.
 */
static inline int32_t luc_high(int32_t x, int32_t y)
{
#if LUC_DSP
    uint32_t twice = (uint32_t)y << 1;
    return luc_add_upper(x, twice, x & -(int32_t)(twice >> 31));
#else
    return (int32_t)(((int64_t)x * y + (1 << 30)) >> 31);
#endif
}

/* x / 2^bits, halves away from zero: gemmlowp's RoundingDivideByPOT. */
static inline int32_t luc_halved(int32_t x, int bits)
{
    return bits ? (((x - (x < 0)) >> (bits - 1)) + 1) >> 1 : x;
}

/* x multiplier / 2^31 2^shift: TFLite's MultiplyByQuantizedMultiplier. */
static inline int32_t luc_scaled(int32_t x, int32_t multiplier, int shift)
{
    if (shift >= 0) { return luc_high((int32_t)((uint32_t)x << shift), multiplier); }
    return luc_halved(luc_high(x, multiplier), -shift);
}

/* A number of steps from zero as an element between limits. */
static inline luc_code_int8 luc_stored_int8(int32_t steps, int32_t zero, int32_t least, int32_t most)
{
    if (steps > most - zero) { steps = most - zero; }
    if (steps < least - zero) { steps = least - zero; }
    return (luc_code_int8)(steps + zero);
}

/* Two of them, where limits cut off more than an element's type does only if that is said. */
static inline void luc_kept_int8(int32_t steps[2], int32_t zero, int32_t least, int32_t most, int32_t cuts)
{
#if LUC_DSP
    int32_t first = luc_within_int8(luc_add_within(steps[0], zero));
    int32_t second = luc_within_int8(luc_add_within(steps[1], zero));
    if (cuts != 0) {
        first = first < least ? least : first > most ? most : first;
        second = second < least ? least : second > most ? most : second;
    }
    steps[0] = first;
    steps[1] = second;
#else
    (void)cuts;
    steps[0] = luc_stored_int8(steps[0], zero, least, most);
    steps[1] = luc_stored_int8(steps[1], zero, least, most);
#endif
}

/* Whether limits cut off more than an element's type does. */
static inline int32_t luc_cuts_int8(int32_t least, int32_t most)
{
    return most - least < 255;
}

static inline int32_t luc_cuts_int16(int32_t least, int32_t most)
{
    return most - least < 65535;
}

/* A layer's sum as steps of its result. */
static inline int32_t luc_rescaled_int8(luc_bias_int8 sum, int32_t multiplier, int shift)
{
    return luc_scaled(sum, multiplier, shift);
}

/* x multiplier / 2^bits, halves up: TFLite's MultiplyByQuantizedMultiplier of int64, whose multipliers
 * have 15 bits.
 */
static inline int32_t luc_rescaled_int16(luc_bias_int16 sum, int32_t multiplier, int bits)
{
    return (int32_t)((sum * multiplier + ((int64_t)1 << (bits - 1))) >> bits);
}

static inline int32_t luc_rescaled_int16_bias_int32(luc_bias_int16_bias_int32 sum, int32_t multiplier,
                                                    int shift)
{
    return luc_scaled(sum, multiplier, shift);
}

#endif
