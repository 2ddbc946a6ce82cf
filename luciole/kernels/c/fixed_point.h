/* TFLite's arithmetic of quantized tensors, bit for bit. */
#ifndef LUC_FIXED_POINT_H
#define LUC_FIXED_POINT_H

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
    if (shift >= 0) return luc_high((int32_t)((uint32_t)x << shift), multiplier);
    return luc_halved(luc_high(x, multiplier), -shift);
}

/* A number of steps from zero as a byte between limits. */
static inline int8_t luc_byte(int32_t steps, int32_t zero, int32_t least, int32_t most)
{
    if (steps > most - zero) steps = most - zero;
    if (steps < least - zero) steps = least - zero;
    return (int8_t)(steps + zero);
}

#endif
