/* Sums of products of bytes and halfwords, two rows of weights at a time: on Arm processors with DSP
 * instructions two products in one.
 */
#ifndef LUC_DOTS_H
#define LUC_DOTS_H

#include "codes.h"
#include "dsp.h"

/* Bytes less a number as halfwords, where whole fours of them are, ready for sums. */
static inline void luc_spread_int8(const int8_t *from, int32_t less, int32_t count, int16_t *to)
{
#if LUC_DSP
    const uint32_t both = (-(uint32_t)less & 0xffffu) * 0x10001u;
    for (; count >= 4; count -= 4, from += 4, to += 4) {
        uint32_t four = luc_load(from), pairs[2];
        pairs[0] = luc_add_even_bytes(both, four);
        pairs[1] = luc_add_odd_bytes(both, four);
        (void)memcpy(to, pairs, sizeof pairs);
    }
#endif
    for (int32_t k = 0; k < count; k++) to[k] = (int16_t)(from[k] - less);
}

/* Makes halfwords ready for sums: those in the middle of each four change places, for what two
 * bytes of four are spread to.
 */
static void luc_prepare(int16_t *x, int32_t count)
{
#if LUC_DSP
    for (; count >= 4; count -= 4, x += 4) {
        int16_t second = x[1];
        x[1] = x[2];
        x[2] = second;
    }
#else
    (void)x;
    (void)count;
#endif
}

static inline void luc_spread_uint8(const uint8_t *from, int32_t less, int32_t count, int16_t *to)
{
    for (int32_t k = 0; k < count; k++) to[k] = (int16_t)(from[k] - less);
    luc_prepare(to, count);
}

/* Halfwords, ready for sums: their zero point is 0. */
static inline void luc_spread_int16(const int16_t *from, int32_t less, int32_t count, int16_t *to)
{
    (void)less;
    (void)memcpy(to, from, 2 * (size_t)count);
    luc_prepare(to, count);
}

/* The sum of prepared halfwords, where it counts: that of weights whose zero point is not 0. */
static inline int32_t luc_total_int8(const int16_t *x, int32_t count)
{
    (void)x;
    (void)count;
    return 0;
}

static inline int32_t luc_total_uint8(const int16_t *x, int32_t count)
{
    int32_t total = 0;
    for (int32_t k = 0; k < count; k++) total += x[k];
    return total;
}

/* Products of two rows of weights and one of prepared halfwords. */
static LUC_APART void luc_dots_2_int8(const int8_t *w, const int8_t *v, const int16_t *x, int32_t count,
                                 luc_sum_int8 sums[2])
{
    luc_sum_int8 a = 0, b = 0;
#if LUC_DSP
    for (; count >= 4; count -= 4, w += 4, v += 4, x += 4) {
        uint32_t even = luc_load(x), odd = luc_load(x + 2), four = luc_load(w), more = luc_load(v);
        a = luc_add_both_int8(luc_even_bytes(four), even, a);
        a = luc_add_both_int8(luc_odd_bytes(four), odd, a);
        b = luc_add_both_int8(luc_even_bytes(more), even, b);
        b = luc_add_both_int8(luc_odd_bytes(more), odd, b);
    }
#endif
    for (int32_t k = 0; k < count; k++) {
        a += w[k] * x[k];
        b += v[k] * x[k];
    }
    sums[0] = a;
    sums[1] = b;
}

/* Products of two rows of weights and two of prepared halfwords. */
static LUC_APART void luc_dots_2x2_int8(const int8_t *w, const int8_t *v, const int16_t *x, const int16_t *y,
                         int32_t count, luc_sum_int8 sums[4])
{
    luc_sum_int8 a = 0, b = 0, c = 0, d = 0;
#if LUC_DSP
    for (; count >= 4; count -= 4, w += 4, v += 4, x += 4, y += 4) {
        uint32_t four = luc_load(w), more = luc_load(v), p = luc_load(x), q = luc_load(y), two;
        two = luc_even_bytes(four);
        a = luc_add_both_int8(two, p, a);
        c = luc_add_both_int8(two, q, c);
        two = luc_even_bytes(more);
        b = luc_add_both_int8(two, p, b);
        d = luc_add_both_int8(two, q, d);
        p = luc_load(x + 2), q = luc_load(y + 2), two = luc_odd_bytes(four);
        a = luc_add_both_int8(two, p, a);
        c = luc_add_both_int8(two, q, c);
        two = luc_odd_bytes(more);
        b = luc_add_both_int8(two, p, b);
        d = luc_add_both_int8(two, q, d);
    }
#endif
    for (int32_t k = 0; k < count; k++) {
        a += w[k] * x[k];
        b += v[k] * x[k];
        c += w[k] * y[k];
        d += v[k] * y[k];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

#endif
