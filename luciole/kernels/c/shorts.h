/* Functions of halfwords that TFLite looks up in tables, bit for bit. */
#ifndef LUC_SHORTS_H
#define LUC_SHORTS_H

#include "fixed_point.h"

struct luc_interpolated {
    uint32_t count;
    const int16_t *entries; /* [513] */
};

/* A line between the two entries on either side of x. */
static inline int32_t luc_on_line(const int16_t *entries, int32_t x)
{
    int32_t at = (x >> 7) + 256, here = entries[at];
    return (int16_t)(here + (((int16_t)(entries[at + 1] - here) * (x & 127) + 64) >> 7));
}

static void luc_interpolated(const struct luc_interpolated *op, const int16_t *x, int16_t *y)
{
    for (uint32_t k = 0; k < op->count; k++) { y[k] = (int16_t)luc_on_line(op->entries, x[k]); }
}

struct luc_by_sigmoids {
    uint32_t count;
    int32_t multiplier; /* to units of 1 / (3 2^12), with shift */
    int32_t shift;
    const uint16_t *sigmoids; /* [256]: 2^16 / (1 + e^(-k / 24)) */
};

/* A number in units; products wrap around. */
static inline int32_t luc_in_units(const struct luc_by_sigmoids *op, int32_t x)
{
    uint32_t half = op->shift ? 1u << (op->shift - 1) : 0u;
    return (int32_t)((uint32_t)x * (uint32_t)op->multiplier + half) >> op->shift;
}

/* A line between two sigmoids, or `most` beyond them, in units of 2^-(16 + bits). */
static int32_t luc_sigmoid(const uint16_t *sigmoids, int32_t units, int bits, int32_t most)
{
    uint32_t size = units < 0 ? 0u - (uint32_t)units : (uint32_t)units, at = size >> bits;
    int32_t rest = (int32_t)(size & ((1u << bits) - 1u));
    if (at >= 255) { return most; }
    return (sigmoids[at] << bits) + rest * (sigmoids[at + 1] - sigmoids[at]);
}

static void luc_logistic_by_sigmoids(const struct luc_by_sigmoids *op, const int16_t *x, int16_t *y)
{
    for (uint32_t k = 0; k < op->count; k++) {
        int32_t units = luc_in_units(op, x[k]), found = luc_sigmoid(op->sigmoids, units, 9, 0x7fff << 10);
        if (units < 0) { found = (1 << 25) - found - 1; }
        y[k] = (int16_t)((found + (1 << 9)) >> 10);
    }
}

/* 2 sigmoid(2 x) - 1 */
static void luc_tanh_by_sigmoids(const struct luc_by_sigmoids *op, const int16_t *x, int16_t *y)
{
    for (uint32_t k = 0; k < op->count; k++) {
        int32_t units = luc_in_units(op, x[k]);
        int32_t found = luc_sigmoid(op->sigmoids, units, 8, 0xffff << 8) - (1 << 23);
        y[k] = (int16_t)((units < 0 ? 127 - found : found + 128) >> 8);
    }
}

struct luc_softmax_int16 {
    uint32_t rows;
    uint32_t depth;
    int32_t multiplier;
    int32_t shift;
    const int16_t *powers;   /* [513]: exponentials of -10 to 0 */
    const int16_t *inverses; /* [513]: 1 / (1 + x) of 0 to 1 */
};

/* Exponentials wait in the results. */
static void luc_softmax_int16(const struct luc_softmax_int16 *op, const int16_t *x, int16_t *y)
{
    for (uint32_t row = 0; row < op->rows; row++, x += op->depth, y += op->depth) {
        int32_t largest = x[0], total = 0, bits = 0, share;
        for (uint32_t k = 1; k < op->depth; k++) {
            if (x[k] > largest) { largest = x[k]; }
        }
        for (uint32_t k = 0; k < op->depth; k++) {
            int32_t units = luc_scaled(x[k] - largest, op->multiplier, op->shift);
            y[k] = (int16_t)luc_on_line(op->powers, luc_short(units + 32767));
            total += y[k];
        }
        while (total >> bits) bits++;
        share = (int32_t)((((int64_t)total << (31 - bits)) + (1 << 13)) >> 14) - 32768 - 65536;
        share = luc_on_line(op->inverses, luc_short(share));
        for (uint32_t k = 0; k < op->depth; k++) {
            int32_t found = (int32_t)(((int64_t)y[k] * share + ((int64_t)1 << (bits - 2))) >> (bits - 1));
            y[k] = (int16_t)(found < 0 ? 0 : luc_short(found));
        }
    }
}

#endif
