/* Counting with learned levels, on machines that need no instruction for it.
 *
 * Weights' bits lie one above the other: row k of a block holds, for 32 lanes, the bit that meets
 * input k. A lane is one basis element of one output. Inputs are sorted into segments: an input is
 * worth what the most frequent level is, plus the factors of the segments that it is in. Rows of a
 * segment are added up by full adders (5 operations add two rows to 32 counters): no bit is touched
 * more than once for a segment, and those that meet the most frequent level not at all.
 *
 *   sum_k x_k w_k = constant + 2 x_m total + sum_segments 2 factor count,   w_k = +-1
 *
 * Numbers are fixed point in 32 bits and wrap around on the way: only whole sums have to fit. Where
 * registers hold several words, as many outputs are counted side by side.
 */
#ifndef LUC_LEARNED_LEVELS_H
#define LUC_LEARNED_LEVELS_H

#include "vectors.h"

enum { LUC_UNIT = 8, LUC_MOST_ROWS = 248, LUC_PLANES = 8, LUC_MOST_LEVELS = 16 };

/* What it costs to weigh a segment's counts, in rows that are added. */
enum { LUC_WEIGHING = 32 };

/* Inputs that differ from the most frequent level by the same number. */
struct luc_segment {
    uint32_t first;  /* of its places in the list of rows */
    uint32_t factor; /* twice the number */
    uint16_t count;  /* at most LUC_MOST_ROWS; the row of zeros fills up to a multiple of LUC_UNIT */
    uint16_t width;  /* bits that counts up to it need */
};

/* How the levels of inputs are worth. */
struct luc_levels {
    const int32_t *level; /* [1 << bits], rising */
    const uint8_t *code;  /* [1 << bits]: signs of the basis behind each level */
    const int32_t *basis; /* [bits] */
    uint16_t inputs;
    uint16_t bits;
};

/* The inputs of one sum, sorted. */
struct luc_sorted {
    struct luc_segment *segment;
    uint16_t *rows;
    unsigned segments;
    uint32_t middle;   /* twice the value of the most frequent level */
    uint32_t constant; /* what all sums begin with */
    int64_t total;     /* the sum of all inputs */
};

#define LUC_ADD(sum, carry, a, b, c) \
    do { \
        luc_bits a_ = (a), b_ = (b), c_ = (c), t_ = a_ ^ b_; \
        carry = (a_ & b_) | (t_ & c_); \
        sum = t_ ^ c_; \
    } while (0)

/* Adds 8 rows to ones, twos and fours; what is carried to the place of 8 is returned. */
#define LUC_ADD_8(r, carry) \
    do { \
        luc_bits p_, q_, u_, v_; \
        LUC_ADD(ones, p_, ones, bits[(r)[0]], bits[(r)[1]]); \
        LUC_ADD(ones, q_, ones, bits[(r)[2]], bits[(r)[3]]); \
        LUC_ADD(twos, u_, twos, p_, q_); \
        LUC_ADD(ones, p_, ones, bits[(r)[4]], bits[(r)[5]]); \
        LUC_ADD(ones, q_, ones, bits[(r)[6]], bits[(r)[7]]); \
        LUC_ADD(twos, v_, twos, p_, q_); \
        LUC_ADD(fours, carry, fours, u_, v_); \
    } while (0)

/* Counts the ones above each other in a segment's rows: plane k holds bit k of 32 counts. */
static void luc_count(const luc_bits *bits, const uint16_t *r, const struct luc_segment *segment,
                      luc_bits planes[LUC_PLANES])
{
    const luc_bits none = LUC_ZERO;
    luc_bits ones = none, twos = none, fours = none, eights = none, carry, more;
    unsigned width = segment->width, units = (segment->count + LUC_UNIT - 1u) / LUC_UNIT;
    planes[4] = planes[5] = planes[6] = planes[7] = none;
    for (; units >= 2; units -= 2, r += 2 * LUC_UNIT) {
        LUC_ADD_8(r, carry);
        LUC_ADD_8(r + LUC_UNIT, more);
        LUC_ADD(eights, carry, eights, carry, more);
        for (unsigned k = 4; k < width; k++) {
            luc_bits t = planes[k];
            planes[k] = t ^ carry;
            carry &= t;
        }
    }
    if (units != 0) {
        LUC_ADD_8(r, carry);
        more = eights & carry;
        eights ^= carry;
        for (unsigned k = 4; k < width; k++) {
            luc_bits t = planes[k];
            planes[k] = t ^ more;
            more &= t;
        }
    }
    planes[0] = ones;
    planes[1] = twos;
    planes[2] = fours;
    planes[3] = eights;
}

/* Swaps the bits of `a` that are not in the mask with those of `b` that are. */
#define LUC_SWAP(a, b, by, mask) \
    do { \
        luc_bits t_ = ((a) >> (by) ^ (b)) & (mask); \
        b ^= t_; \
        a ^= t_ << (by); \
    } while (0)

/* Turns 8 planes of 32 counts into 8 words of 4 bytes: byte q of word i is the count in bit
 * 8 q + i. Four matrices of 8 x 8 bits are transposed side by side.
 */
static void luc_transpose(luc_bits p[LUC_PLANES], unsigned width)
{
    luc_bits a = p[0], b = p[1], c = p[2], d = p[3], e, f, g, h;
    const uint32_t one = 0x55555555, two = 0x33333333, four = 0x0f0f0f0f;
    if (width > 4) {
        e = p[4], f = p[5], g = p[6], h = p[7];
        LUC_SWAP(a, e, 4, four);
        LUC_SWAP(b, f, 4, four);
        LUC_SWAP(c, g, 4, four);
        LUC_SWAP(d, h, 4, four);
    } else {
        e = a >> 4 & four, f = b >> 4 & four, g = c >> 4 & four, h = d >> 4 & four;
        a &= four, b &= four, c &= four, d &= four;
    }
    LUC_SWAP(a, c, 2, two);
    LUC_SWAP(b, d, 2, two);
    LUC_SWAP(e, g, 2, two);
    LUC_SWAP(f, h, 2, two);
    LUC_SWAP(a, b, 1, one);
    LUC_SWAP(c, d, 1, one);
    LUC_SWAP(e, f, 1, one);
    LUC_SWAP(g, h, 1, one);
    p[0] = a, p[1] = b, p[2] = c, p[3] = d, p[4] = e, p[5] = f, p[6] = g, p[7] = h;
}

/* Sums of 4 lanes: those of the totals, and every segment's counts times its factor. */
static void luc_weigh(const struct luc_sorted *x, const luc_bits *counts, const uint16_t *totals,
                      luc_sums sums[4])
{
    luc_bits a = x->constant + x->middle * LUC_WIDE(totals);
    luc_bits b = x->constant + x->middle * LUC_WIDE(totals + LUC_WORDS);
    luc_bits c = x->constant + x->middle * LUC_WIDE(totals + 2 * LUC_WORDS);
    luc_bits d = x->constant + x->middle * LUC_WIDE(totals + 3 * LUC_WORDS);
    const struct luc_segment *end = x->segment + x->segments;
    for (const struct luc_segment *s = x->segment; s < end; s++, counts += LUC_PLANES) {
        luc_bits four = *counts;
        uint32_t factor = s->factor;
        a += (four & 255) * factor;
        b += (four >> 8 & 255) * factor;
        c += (four >> 16 & 255) * factor;
        d += (four >> 24) * factor;
    }
    sums[0] = (luc_sums)a;
    sums[1] = (luc_sums)b;
    sums[2] = (luc_sums)c;
    sums[3] = (luc_sums)d;
}

/* Makes segments of the rows from `first` to before `end`; returns where the next ones begin. */
static uint32_t luc_close(struct luc_sorted *x, uint32_t first, uint32_t end, uint16_t zeros,
                          uint32_t differs)
{
    uint32_t count = end - first;
    while ((end - first) % LUC_UNIT) { x->rows[end++] = zeros; }
    x->constant -= count * differs;
    for (uint32_t done = 0; done < count; done += LUC_MOST_ROWS) {
        struct luc_segment *s = &x->segment[x->segments++];
        s->first = first + done;
        s->count = (uint16_t)(count - done < LUC_MOST_ROWS ? count - done : LUC_MOST_ROWS);
        for (s->width = 1; s->count >> s->width; s->width++) {}
        s->factor = 2 * differs;
    }
    return end;
}

/* One segment for each level but the most frequent one. */
static void luc_sort_by_level(const struct luc_levels *q, const uint8_t *x, const uint16_t *count,
                              unsigned most, struct luc_sorted *to)
{
    uint32_t end[LUC_MOST_LEVELS], first = 0;
    for (unsigned l = 0; l < 1u << q->bits; l++) {
        end[l] = first;
        if (l != most) { first += (count[l] + LUC_UNIT - 1u) / LUC_UNIT * LUC_UNIT; }
    }
#if LUC_WORDS > 1
    for (unsigned l = 0; l < 1u << q->bits; l++) {
        if (l != most && count[l]) { luc_places(x, q->inputs, l, to->rows + end[l]); }
    }
    for (unsigned l = 0; l < 1u << q->bits; l++) { end[l] += l != most ? count[l] : 0u; }
#else
    for (unsigned k = 0; k < q->inputs; k++) {
        if (x[k] != most) { to->rows[end[x[k]]++] = (uint16_t)k; }
    }
#endif
    for (unsigned l = 0; l < 1u << q->bits; l++) {
        uint32_t differs = (uint32_t)q->level[l] - (uint32_t)q->level[most];
        if (l != most) { (void)luc_close(to, end[l] - count[l], end[l], q->inputs, differs); }
    }
}

/* One segment for each basis element: the inputs whose sign is not that of the most frequent. */
static void luc_sort_by_sign(const struct luc_levels *q, const uint8_t *x, unsigned most,
                             struct luc_sorted *to)
{
    uint32_t first = 0;
    for (unsigned i = 0; i < q->bits; i++) {
        uint32_t end = first, differs = 2 * (uint32_t)q->basis[i];
        unsigned sign = q->code[most] >> i & 1;
        for (unsigned k = 0; k < q->inputs; k++) {
            to->rows[end] = (uint16_t)k;
            end += (q->code[x[k]] >> i & 1) ^ sign;
        }
        first = luc_close(to, first, end, q->inputs, sign ? 0u - differs : differs);
    }
}

/* Counts how many inputs are on each level; returns the most frequent one. */
static unsigned luc_histogram(const struct luc_levels *q, const uint8_t *x, uint16_t *count)
{
    unsigned most = 0;
    for (unsigned l = 0; l < 1u << q->bits; l++) { count[l] = 0; }
#if LUC_WORDS > 1
    for (unsigned k = 0; k < q->inputs; k += 32) {
        for (unsigned l = 0; l < 1u << q->bits; l++) {
            count[l] += (uint16_t)__builtin_popcount(luc_equal(x, q->inputs, k, l));
        }
    }
#else
    for (unsigned k = 0; k < q->inputs; k++) { count[x[k]]++; }
#endif
    for (unsigned l = 1; l < 1u << q->bits; l++) {
        if (count[l] > count[most]) { most = l; }
    }
    return most;
}

/* What all sums begin with, before there are segments. */
static void luc_begin(const struct luc_levels *q, const uint16_t *count, unsigned most,
                      struct luc_sorted *to)
{
    to->segments = 0;
    to->middle = 2 * (uint32_t)q->level[most];
    to->constant = 0u - (uint32_t)q->level[most] * q->inputs;
    to->total = 0;
    for (unsigned l = 0; l < 1u << q->bits; l++) { to->total += (int64_t)count[l] * q->level[l]; }
}

/* Sorts inputs, given as numbers of levels, in the way that takes fewer steps. */
static void luc_sort(const struct luc_levels *q, const uint8_t *x, struct luc_sorted *to)
{
    uint16_t count[LUC_MOST_LEVELS];
    unsigned most = luc_histogram(q, x, count);
#if LUC_WORDS > 1
    luc_begin(q, count, most, to);
    luc_sort_by_level(q, x, count, most, to);
#else
    uint32_t by_level = 0, by_sign = q->bits * (uint32_t)LUC_WEIGHING;
    luc_begin(q, count, most, to);
    for (unsigned l = 0; l < 1u << q->bits; l++) {
        if (l == most || !count[l]) { continue; }
        by_level += count[l] + (uint32_t)LUC_WEIGHING;
        for (unsigned i = 0; i < q->bits; i++) {
            by_sign += (q->code[l] ^ q->code[most]) >> i & 1 ? count[l] : 0u;
        }
    }
    if (by_level <= by_sign) {
        luc_sort_by_level(q, x, count, most, to);
    } else {
        luc_sort_by_sign(q, x, most, to);
    }
#endif
}

/* The level of a number among rising thresholds: a tie goes to the lower one. */
static inline uint8_t luc_level(int32_t number, const int32_t *thresholds, unsigned bits)
{
    unsigned level = 0;
    for (unsigned step = 1u << bits >> 1; step != 0; step >>= 1) {
        if (number > thresholds[level + step - 1]) { level += step; }
    }
    return (uint8_t)level;
}

/* The levels of numbers. */
static inline void luc_levels_among(const int32_t *x, uint8_t *y, uint32_t count,
                                    const int32_t *thresholds, unsigned bits)
{
#if LUC_WORDS > 1
    (void)memset(y, 0, count);
    for (uint32_t t = 0; t < (1u << bits) - 1; t++) {
        for (uint32_t k = 0; k < count; k++) { y[k] = (uint8_t)(y[k] + (x[k] > thresholds[t])); }
    }
#else
    for (uint32_t k = 0; k < count; k++) { y[k] = luc_level(x[k], thresholds, bits); }
#endif
}

/* What becomes of sums. */
struct luc_results {
    uint32_t outputs;
    uint32_t next_bits;        /* of the levels that results are turned into, 0: they are kept */
    const int32_t *starts;     /* [outputs]: biases */
    const int32_t *offsets;    /* [outputs]: added to all of an output's weights, or none */
    const int32_t *thresholds; /* [(1 << next_bits) - 1] */
};

/* Results of LUC_WORDS outputs from their sums: fixed point, or the number of a level. */
static inline void luc_finish(const struct luc_results *to, struct luc_products *sums, int64_t total,
                              uint32_t output, void *y)
{
    luc_sums all = LUC_ZERO, result;
    all += (int32_t)total;
    if (to->offsets != NULL) { luc_add_products(sums, &all, to->offsets + output); }
    luc_upper_halves(sums, &result);
    result += *(const luc_sums *)(to->starts + output);
#if LUC_WORDS > 1
    *(luc_sums *)((int32_t *)y + output) = result;
#else
    if (to->next_bits != 0) {
        ((uint8_t *)y)[output] = luc_level(result, to->thresholds, to->next_bits);
    } else {
        ((int32_t *)y)[output] = result;
    }
#endif
}

/* A record's results, which are in whole vectors, as callers get them. */
static inline void luc_leave(const struct luc_results *to, const int32_t *results, void *y)
{
    if (to->next_bits != 0) {
        luc_levels_among(results, (uint8_t *)y, to->outputs, to->thresholds, to->next_bits);
    } else {
        (void)memcpy(y, results, 4 * (size_t)to->outputs);
    }
}

#endif
