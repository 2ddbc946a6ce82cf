/* SOFTMAX of bytes, in fixed point: bit for bit TFLite's. */
#ifndef LUC_SOFTMAX_INT8_H
#define LUC_SOFTMAX_INT8_H

#include "codes.h"

struct luc_softmax_int8 {
    uint32_t rows;
    uint32_t depth;
    int32_t least; /* the lowest code */
    const int32_t *powers; /* [256]: exponentials of differences of 0, -1, ... */
    const int32_t *parts;  /* [256]: what each adds to a sum */
};

/* x y / 2^31, halves up. */
static inline int64_t luc_part(int64_t x, int64_t y)
{
    return (x * y + (1 << 30)) >> 31;
}

/* 1 / (1 + x) of 0 <= x < 1 without integer bits: three steps of Newton's method. */
static int64_t luc_inverse(int64_t x)
{
    const int64_t one = (int64_t)1 << 31;
    int64_t half = (x + one) >> 1, found = 1515870810 + luc_part(half, -1010580540);
    for (int k = 0; k < 3; k++) {
        int64_t step = luc_part(found, (1 << 29) - luc_part(half, found)) * 4;
        found += step > one - 1 ? one - 1 : step < -one ? -one : step;
    }
    return found * 2 > one - 1 ? one - 1 : found * 2;
}

static void luc_softmax_int8(const struct luc_softmax_int8 *op, const luc_code_int8 *x, luc_code_int8 *y)
{
    for (uint32_t row = 0; row < op->rows; row++, x += op->depth, y += op->depth) {
        int largest = x[0], bits = 19, down;
        int64_t total = 0, share;
        for (uint32_t k = 0; k < op->depth; k++) {
            if (x[k] > largest) { largest = x[k]; }
        }
        for (uint32_t k = 0; k < op->depth; k++) { total += op->parts[largest - x[k]]; }
        if (total > INT64_C(4294967295)) { total = INT64_C(4294967295); }
        while ((total >> bits) != 0) { bits++; }
        share = luc_inverse(total * ((int64_t)1 << (32 - bits)) - ((int64_t)1 << 31));
        down = 12 - 32 + bits + 31 - 8;
        for (uint32_t k = 0; k < op->depth; k++) {
            int64_t number = luc_part(share, op->powers[largest - x[k]]);
            number = ((number + ((int64_t)1 << (down - 1))) >> down);
            y[k] = (luc_code_int8)((number > 255 ? 255 : number) + op->least);
        }
    }
}

#endif
