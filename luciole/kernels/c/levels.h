/* Between real numbers, bytes, fixed point and the numbers of levels. */
#ifndef LUC_LEVELS_H
#define LUC_LEVELS_H

#include "learned_levels.h"

struct luc_levels_of_floats {
    uint32_t count;
    uint8_t bits;
    const int32_t *thresholds; /* [(1 << bits) - 1], as integers in the order of floats */
};

/* Integers in the order of floats; 0 and -0 are the same, what is not a number is the least. */
static inline int32_t luc_order(float x)
{
    int32_t order;
    (void)memcpy(&order, &x, sizeof order);
    if ((order & 0x7fffffff) > 0x7f800000) { return INT32_MIN; }
    if (order == INT32_MIN) { return 0; }
    return order < 0 ? order ^ 0x7fffffff : order;
}

/* Bits of floats compare as integers, without a unit that computes with floats. */
static void luc_levels_of_floats(const struct luc_levels_of_floats *op, const float *x, uint8_t *y)
{
#if LUC_WORDS > 1
    (void)memset(y, 0, op->count);
    for (uint32_t t = 0; t < (1u << op->bits) - 1; t++) {
        int32_t order = op->thresholds[t];
        float threshold;
        order = order < 0 ? order ^ 0x7fffffff : order;
        (void)memcpy(&threshold, &order, sizeof threshold);
        for (uint32_t k = 0; k < op->count; k++) { y[k] = (uint8_t)(y[k] + (x[k] > threshold)); }
    }
#else
    for (uint32_t k = 0; k < op->count; k++) { y[k] = luc_level(luc_order(x[k]), op->thresholds, op->bits); }
#endif
}

struct luc_levels_of_fixed {
    uint32_t count;
    uint8_t bits;
    const int32_t *thresholds; /* [(1 << bits) - 1], in the fixed point of x */
};

static void luc_levels_of_fixed(const struct luc_levels_of_fixed *op, const int32_t *x, uint8_t *y)
{
    luc_levels_among(x, y, op->count, op->thresholds, op->bits);
}

struct luc_floats_of_fixed {
    uint32_t count;
    float unit; /* what 1 stands for */
};

static void luc_floats_of_fixed(const struct luc_floats_of_fixed *op, const int32_t *x, float *y)
{
    for (uint32_t k = 0; k < op->count; k++) { y[k] = (float)x[k] * op->unit; }
}

struct luc_bytes_of_bytes {
    uint32_t count;
    const uint8_t *table; /* [256]: what each byte becomes */
};

static void luc_bytes_of_bytes(const struct luc_bytes_of_bytes *op, const void *x, void *y)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    for (uint32_t k = 0; k < op->count; k++) { to[k] = op->table[from[k]]; }
}

struct luc_floats_of_bytes {
    uint32_t count;
    const float *table; /* [256] */
};

static void luc_floats_of_bytes(const struct luc_floats_of_bytes *op, const void *x, float *y)
{
    const uint8_t *from = (const uint8_t *)x;
    for (uint32_t k = 0; k < op->count; k++) { y[k] = op->table[from[k]]; }
}

#endif
