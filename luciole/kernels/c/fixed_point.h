/* TFLite's arithmetic of quantized tensors, bit for bit. */
#ifndef LUC_FIXED_POINT_H
#define LUC_FIXED_POINT_H

#include <stdint.h>

/* x y / 2^31, halves up: gemmlowp's SaturatingRoundingDoublingHighMul. */
static inline int32_t luc_high(int32_t x, int32_t y)
{
    int64_t found = ((int64_t)x * y + (1 << 30)) >> 31;
    return found > INT32_MAX ? INT32_MAX : (int32_t)found;
}

/* x / 2^bits, halves away from zero: gemmlowp's RoundingDivideByPOT. */
static inline int32_t luc_halved(int32_t x, int bits)
{
    int32_t mask = (int32_t)((1u << bits) - 1u);
    return (x >> bits) + ((x & mask) > (mask >> 1) + (x < 0));
}

/* x multiplier / 2^31 2^shift: TFLite's MultiplyByQuantizedMultiplier. */
static inline int32_t luc_scaled(int32_t x, int32_t multiplier, int shift)
{
    int32_t raised = shift > 0 ? (int32_t)((uint32_t)x << shift) : x;
    return luc_halved(luc_high(raised, multiplier), shift < 0 ? -shift : 0);
}

/* A number of steps from zero as a byte between limits. */
static inline int8_t luc_byte(int32_t steps, int32_t zero, int32_t least, int32_t most)
{
    if (steps > most - zero) return (int8_t)most;
    if (steps < least - zero) return (int8_t)least;
    return (int8_t)(steps + zero);
}

#endif
