/* What stands between layers of learned levels, in fixed point: a number is an int32 in units of
 * 2^-places, and limits are in its units.
 */
#ifndef LUC_FIXED_H
#define LUC_FIXED_H

#include <stdint.h>

#include "learned_levels.h"
#include "windows.h"

/* x / 2^down, halves up. */
static inline int32_t luc_fewer_places(int32_t x, unsigned down)
{
    return down ? (x >> down) + (x >> (down - 1) & 1) : x;
}

/* A number between limits. */
static inline int32_t luc_between(int32_t x, int32_t least, int32_t most)
{
    return x < least ? least : x > most ? most : x;
}

/* x / count, halves away from zero. */
static inline int32_t luc_quotient(int64_t x, int32_t count)
{
    return (int32_t)((x < 0 ? x - count / 2 : x + count / 2) / count);
}

/* Writes a number, or its level where there are some. */
static inline void luc_store(int32_t number, const int32_t *thresholds, unsigned bits, void *y, uint32_t k)
{
    if (bits != 0) {
        ((uint8_t *)y)[k] = luc_level(number, thresholds, bits);
    } else {
        ((int32_t *)y)[k] = number;
    }
}

struct luc_add_fixed {
    uint32_t count;
    uint8_t x_down;    /* places of x that the sum does not have */
    uint8_t y_down;
    uint8_t next_bits; /* of the levels that sums are turned into, 0: they are kept */
    int32_t least;
    int32_t most;
    const int32_t *thresholds; /* [(1 << next_bits) - 1] */
};

/* z: int32_t, or uint8_t where there are next levels. */
static void luc_add_fixed(const struct luc_add_fixed *op, const int32_t *x, const int32_t *y, void *z)
{
    for (uint32_t k = 0; k < op->count; k++) {
        int32_t sum = luc_fewer_places(x[k], op->x_down) + luc_fewer_places(y[k], op->y_down);
        luc_store(luc_between(sum, op->least, op->most), op->thresholds, op->next_bits, z, k);
    }
}

struct luc_add_fixed_to_bytes {
    uint32_t count;
    uint8_t y_down;
    uint8_t next_bits;
    int32_t least;
    int32_t most;
    const int32_t *thresholds;
    const int32_t *table; /* [256]: what bytes stand for, in the places of the sum */
};

/* The sum of bytes and fixed point; z as above. */
static void luc_add_fixed_to_bytes(const struct luc_add_fixed_to_bytes *op, const void *x,
                                   const int32_t *y, void *z)
{
    const uint8_t *from = (const uint8_t *)x;
    for (uint32_t k = 0; k < op->count; k++) {
        int32_t sum = op->table[from[k]] + luc_fewer_places(y[k], op->y_down);
        luc_store(luc_between(sum, op->least, op->most), op->thresholds, op->next_bits, z, k);
    }
}

struct luc_clamp_fixed {
    uint32_t count;
    int32_t least;
    int32_t most;
};

static void luc_clamp_fixed(const struct luc_clamp_fixed *op, const int32_t *x, int32_t *y)
{
    for (uint32_t k = 0; k < op->count; k++) { y[k] = luc_between(x[k], op->least, op->most); }
}

struct luc_quantize_fixed {
    uint32_t count;
    int32_t multiplier;
    int32_t shift;
    int32_t zero;
};

/* The nearest steps x multiplier / 2^shift, halves away from zero, saturated. */
static void luc_quantize_fixed(const struct luc_quantize_fixed *op, const int32_t *x, int8_t *y)
{
    int64_t half = (int64_t)1 << (op->shift - 1);
    for (uint32_t k = 0; k < op->count; k++) {
        int64_t steps = (((int64_t)x[k] * op->multiplier + half - (x[k] < 0)) >> op->shift) + op->zero;
        y[k] = (int8_t)(steps < -128 ? -128 : steps > 127 ? 127 : steps);
    }
}

struct luc_mean_fixed {
    uint32_t outer;
    uint32_t count;
    uint32_t inner;
};

/* MEAN over neighbouring axes: [outer, count, inner] to [outer, inner]. */
static void luc_mean_fixed(const struct luc_mean_fixed *op, const int32_t *x, int32_t *y)
{
    for (uint32_t i = 0; i < op->outer; i++, x += op->count * op->inner) {
        for (uint32_t j = 0; j < op->inner; j++) {
            int64_t sum = 0;
            for (uint32_t k = 0; k < op->count; k++) { sum += x[k * op->inner + j]; }
            *y++ = luc_quotient(sum, (int32_t)op->count);
        }
    }
}

struct luc_pool_2d_fixed {
    struct luc_windows windows;
    int32_t least;
    int32_t most;
    uint8_t takes_largest; /* else the mean */
};

/* One result of a pool, of a channel's taps inside. */
static int32_t luc_pooled(const struct luc_pool_2d_fixed *op, const int32_t *x,
                          const struct luc_image_window *at)
{
    const struct luc_windows *w = &op->windows;
    int64_t sum = 0;
    int32_t largest = INT32_MIN;
    for (int32_t k = at->rows.first; k < at->rows.last; k++) {
        for (int32_t l = at->columns.first; l < at->columns.last; l++) {
            int32_t v = x[luc_pixel(w, at, k, l) * w->channels];
            sum += v;
            largest = v > largest ? v : largest;
        }
    }
    if (op->takes_largest != 0) { return largest; }
    return luc_quotient(sum, (at->rows.last - at->rows.first) * (at->columns.last - at->columns.first));
}

/* AVERAGE_POOL_2D or MAX_POOL_2D: what lies in the padding does not count. */
static void luc_pool_2d_fixed(const struct luc_pool_2d_fixed *op, const int32_t *x, int32_t *y)
{
    const struct luc_windows *w = &op->windows;
    int32_t count = luc_window_count(w);
    for (int32_t number = 0; number < count; number++) {
        struct luc_image_window at = luc_window_at(w, number);
        for (int32_t c = 0; c < w->outputs; c++) {
            *y++ = luc_between(luc_pooled(op, x + c, &at), op->least, op->most);
        }
    }
}

#endif
