/* Sums of products of bytes and halfwords, two rows of weights at a time: on Arm processors with DSP
 * instructions two products in one, with Helium eight.
 *
 * Halfwords wait in lists. With DSP instructions alone those of each four lie as two bytes of four are spread
 * to: the first and the third, then the second and the fourth; and of two lists side by side, word by
 * word in turn.
 */
#ifndef LUC_DOTS_H
#define LUC_DOTS_H

#include "codes.h"
#include "dsp.h"

/* Where an element is in a list, of so many side by side. */
static inline int32_t luc_listed(int32_t k, int32_t lists)
{
#if LUC_IN_PAIRS
    return (k / 4 * 4 + k % 2 * 2) * lists + k / 2 % 2;
#else
    (void)lists;
    return k;
#endif
}

/* Where the second of two lists begins, behind the first one's beginning. */
static inline int32_t luc_second_list(int32_t count)
{
#if LUC_IN_PAIRS
    (void)count;
    return 2;
#else
    return (count + 3) / 4 * 4;
#endif
}

/* Lists bytes less a number, where whole fours of them are. */
static inline void luc_spread_int8(const int8_t *from, int32_t less, int32_t count, int16_t *to,
                                   int32_t lists)
{
#if LUC_IN_PAIRS
    const uint32_t both = (-(uint32_t)less & 0xffffu) * 0x10001u;
    for (; count >= 4; count -= 4, from += 4, to += 4 * lists) {
        uint32_t four = luc_load(from);
        luc_put(to, luc_add_even_bytes(both, four));
        luc_put(to + 2 * lists, luc_add_odd_bytes(both, four));
    }
#elif LUC_MVE
    for (; count >= 8; count -= 8, from += 8, to += 8) {
        vstrhq_s16(to, vsubq_n_s16(vldrbq_s16(from), (int16_t)less));
    }
#endif
    for (int32_t k = 0; k < count; k++) { to[luc_listed(k, lists)] = (int16_t)(from[k] - less); }
}

static inline void luc_spread_uint8(const uint8_t *from, int32_t less, int32_t count, int16_t *to,
                                    int32_t lists)
{
#if LUC_IN_PAIRS
    const uint32_t both = (-(uint32_t)less & 0xffffu) * 0x10001u;
    for (; count >= 4; count -= 4, from += 4, to += 4 * lists) {
        uint32_t four = luc_load(from);
        luc_put(to, luc_add_even_unsigned(both, four));
        luc_put(to + 2 * lists, luc_add_odd_unsigned(both, four));
    }
#elif LUC_MVE
    for (; count >= 8; count -= 8, from += 8, to += 8) {
        vstrhq_u16((uint16_t *)to, vsubq_n_u16(vldrbq_u16(from), (uint16_t)less));
    }
#endif
    for (int32_t k = 0; k < count; k++) { to[luc_listed(k, lists)] = (int16_t)(from[k] - less); }
}

/* Lists halfwords: their zero point is 0. */
static inline void luc_spread_int16(const int16_t *from, int32_t less, int32_t count, int16_t *to,
                                    int32_t lists)
{
    (void)less;
#if LUC_IN_PAIRS
    for (; count >= 4; count -= 4, from += 4, to += 4 * lists) {
        uint32_t first = luc_load(from), second = luc_load(from + 2);
        luc_put(to, (first & 0xffffu) | second << 16);
        luc_put(to + 2 * lists, first >> 16 | (second & 0xffff0000u));
    }
#endif
    for (int32_t k = 0; k < count; k++) { to[luc_listed(k, lists)] = from[k]; }
}

/* Lists zeros. */
static inline void luc_spread_nothing(int32_t count, int16_t *to, int32_t lists)
{
#if LUC_IN_PAIRS
    for (; count >= 4; count -= 4, to += 4 * lists) {
        luc_put(to, 0);
        luc_put(to + 2 * lists, 0);
    }
#endif
    for (int32_t k = 0; k < count; k++) { to[luc_listed(k, lists)] = 0; }
}

/* The sum of a list, where it counts: that of weights whose zero point is not 0. */
static inline int32_t luc_total_int8(const int16_t *x, int32_t count, int32_t lists)
{
    (void)x;
    (void)count;
    (void)lists;
    return 0;
}

static inline int32_t luc_total_uint8(const int16_t *x, int32_t count, int32_t lists)
{
    int32_t total = 0;
#if LUC_IN_PAIRS
    for (; count >= 4; count -= 4, x += 4 * lists) {
        total = luc_add_both_int8(luc_load(x), 0x10001u, total);
        total = luc_add_both_int8(luc_load(x + 2 * lists), 0x10001u, total);
    }
#endif
    for (int32_t k = 0; k < count; k++) { total += x[luc_listed(k, lists)]; }
    return total;
}

#if LUC_IN_PAIRS
/* Adds the products of four weights, of two rows each, and a list. */
static LUC_INSIDE const int16_t *luc_add_2_int8(const int8_t *w, const int8_t *v, const int16_t *x,
                                                luc_sum_int8 sums[2])
{
    uint32_t four = luc_load(w), more = luc_load(v), even, odd;
    const int16_t *next = luc_load_two(x, &even, &odd);
    sums[0] = luc_add_both_int8(luc_even_bytes(four), even, sums[0]);
    sums[0] = luc_add_both_int8(luc_odd_bytes(four), odd, sums[0]);
    sums[1] = luc_add_both_int8(luc_even_bytes(more), even, sums[1]);
    sums[1] = luc_add_both_int8(luc_odd_bytes(more), odd, sums[1]);
    return next;
}
#endif

#if LUC_IN_PAIRS
/* The same, of two lists side by side. */
static LUC_INSIDE const int16_t *luc_add_2x2_int8(const int8_t *w, const int8_t *v, const int16_t *x,
                                                  luc_sum_int8 sums[4])
{
    uint32_t four = luc_load(w), more = luc_load(v), p, q, two;
    const int16_t *next = luc_load_two(x, &p, &q);
    two = luc_even_bytes(four);
    sums[0] = luc_add_both_int8(two, p, sums[0]);
    sums[2] = luc_add_both_int8(two, q, sums[2]);
    two = luc_even_bytes(more);
    sums[1] = luc_add_both_int8(two, p, sums[1]);
    sums[3] = luc_add_both_int8(two, q, sums[3]);
    next = luc_load_two(next, &p, &q), two = luc_odd_bytes(four);
    sums[0] = luc_add_both_int8(two, p, sums[0]);
    sums[2] = luc_add_both_int8(two, q, sums[2]);
    two = luc_odd_bytes(more);
    sums[1] = luc_add_both_int8(two, p, sums[1]);
    sums[3] = luc_add_both_int8(two, q, sums[3]);
    return next;
}
#endif

#if LUC_MVE
/* Adds the products of eight weights and eight of a list. */
static inline luc_sum_int8 luc_add_eight_int8(int16x8_t w, int16x8_t x, luc_sum_int8 sum)
{
    return vmladavaq_s16(sum, w, x);
}
#endif

#if LUC_MVE
static inline luc_sum_int16_long luc_add_eight_int16_long(int16x8_t w, int16x8_t x,
                                                          luc_sum_int16_long sum)
{
    return vmlaldavaq_s16(sum, w, x);
}
#endif

#if LUC_MVE
/* Adds the products of vectors of weights, of two rows, and of a list. */
static LUC_INSIDE void luc_add_eights_int8(int16x8_t w, int16x8_t v, int16x8_t x, luc_sum_int8 sums[2])
{
    sums[0] = luc_add_eight_int8(w, x, sums[0]);
    sums[1] = luc_add_eight_int8(v, x, sums[1]);
}
#endif

/* Products of two rows of weights and a list. */
static LUC_INSIDE void luc_dots_2_int8(const int8_t *w, const int8_t *v, const int16_t *x, int32_t count,
                                   luc_sum_int8 sums[2])
{
    const int16_t *list = x;
    sums[0] = 0;
    sums[1] = 0;
#if LUC_IN_PAIRS
    for (; LUC_UNROLLED && count >= 8; count -= 8, w += 8, v += 8) {
        list = luc_add_2_int8(w, v, list, sums);
        list = luc_add_2_int8(w + 4, v + 4, list, sums);
    }
    for (; count >= 4; count -= 4, w += 4, v += 4) { list = luc_add_2_int8(w, v, list, sums); }
#endif
#if LUC_MVE
    for (; count >= 8; count -= 8, w += 8, v += 8, list += 8) {
        luc_add_eights_int8(vldrbq_s16(w), vldrbq_s16(v), vldrhq_s16(list), sums);
    }
    if (count > 0) {
        mve_pred16_t some = vctp16q((uint32_t)count);
        int16x8_t one = vldrbq_z_s16(w, some), two = vldrbq_z_s16(v, some);
        luc_add_eights_int8(one, two, vldrhq_z_s16(list, some), sums);
    }
#else
    for (int32_t k = 0; k < count; k++) {
        int32_t at = luc_listed(k, 1);
        sums[0] += w[k] * list[at];
        sums[1] += v[k] * list[at];
    }
#endif
}

/* Products of two rows of weights and two lists. */
static LUC_INSIDE void luc_dots_2x2_int8(const int8_t *w, const int8_t *v, const int16_t *x, int32_t count,
                                     luc_sum_int8 sums[4])
{
    const int16_t *list = x, *other = x + luc_second_list(count);
    for (int k = 0; k < 4; k++) { sums[k] = 0; }
#if LUC_IN_PAIRS
    for (; LUC_UNROLLED && count >= 8; count -= 8, w += 8, v += 8) {
        list = luc_add_2x2_int8(w, v, list, sums);
        list = luc_add_2x2_int8(w + 4, v + 4, list, sums);
    }
    for (; count >= 4; count -= 4, w += 4, v += 4) { list = luc_add_2x2_int8(w, v, list, sums); }
    other = list + luc_second_list(count);
#endif
#if LUC_MVE
    for (; count >= 8; count -= 8, w += 8, v += 8, list += 8, other += 8) {
        int16x8_t one = vldrbq_s16(w), two = vldrbq_s16(v);
        luc_add_eights_int8(one, two, vldrhq_s16(list), sums);
        luc_add_eights_int8(one, two, vldrhq_s16(other), sums + 2);
    }
    if (count > 0) {
        mve_pred16_t some = vctp16q((uint32_t)count);
        int16x8_t one = vldrbq_z_s16(w, some), two = vldrbq_z_s16(v, some);
        luc_add_eights_int8(one, two, vldrhq_z_s16(list, some), sums);
        luc_add_eights_int8(one, two, vldrhq_z_s16(other, some), sums + 2);
    }
#else
    for (int32_t k = 0; k < count; k++) {
        int32_t at = luc_listed(k, 2);
        sums[0] += w[k] * list[at];
        sums[1] += v[k] * list[at];
        sums[2] += w[k] * other[at];
        sums[3] += v[k] * other[at];
    }
#endif
}

#endif
