/* LQ_FULLY_CONNECTED on machines that count the ones of many words at once.
 *
 * Bits of the inputs that differ from those of the most frequent level meet the weights': as in
 * learned_levels.h, with a segment for each basis element,
 *
 *   sum_k x_k w_k = constant + middle total + sum_i factor_i ones(different_i & weights)
 *
 * and the same fixed point, which gives the same bits. Words of inputs that are all on the most
 * frequent level are left out.
 */
#ifndef LUC_LQ_COUNTED_H
#define LUC_LQ_COUNTED_H

#include "learned_levels.h"

enum { LUC_MOST_BITS = 4 };

struct luc_lq_counted {
    uint32_t records;
    uint16_t inputs;
    uint16_t outputs;
    uint8_t input_bits;
    uint8_t weight_bits;
    uint8_t next_bits;         /* of the levels that results are turned into, 0: they are kept */
    const int32_t *level;      /* [1 << input_bits], rising */
    const uint8_t *code;       /* [1 << input_bits]: signs of the basis behind each level */
    const int32_t *basis;      /* [input_bits] */
    const uint32_t *bits;      /* [outputs / words][weight_bits][inputs / 32][words]: weights */
    const uint16_t *totals;    /* [outputs / words][weight_bits][words]: ones of each output */
    const int32_t *scales;     /* of the same shape: bases of the weights */
    const int32_t *starts;     /* [outputs]: biases */
    const int32_t *offsets;    /* [outputs]: added to all of an output's weights, or none */
    const int32_t *thresholds; /* [(1 << next_bits) - 1], between the levels of the next layer */
};

/* A record's inputs: which words differ from the most frequent level, and how. */
struct luc_different {
    uint32_t middle;
    uint32_t constant;
    uint32_t factor[LUC_MOST_BITS];
    unsigned words;
    int64_t total;
    uint16_t *place;                  /* [words], of those that differ */
    uint32_t (*bits)[LUC_MOST_BITS]; /* [words], of each basis element */
};

/* Finds the bits of the basis behind 32 inputs from input k on, and counts their levels. */
static void luc_basis_bits(const struct luc_levels *q, const uint8_t *x, unsigned k,
                           uint32_t bits[LUC_MOST_BITS], uint16_t *count)
{
    for (unsigned i = 0; i < LUC_MOST_BITS; i++) { bits[i] = 0; }
    for (unsigned l = 0; l < 1u << q->bits; l++) {
        uint32_t found = luc_equal(x, q->inputs, k, l);
        count[l] += (uint16_t)__builtin_popcount(found);
        for (unsigned i = 0; i < LUC_MOST_BITS; i++) { bits[i] |= q->code[l] >> i & 1 ? found : 0u; }
    }
}

/* Keeps the words with bits that differ from those of the most frequent level. */
static void luc_keep(const struct luc_levels *q, unsigned most, struct luc_different *to)
{
    to->words = 0;
    for (unsigned k = 0; k < q->inputs; k += 32) {
        const uint32_t *from = to->bits[k / 32];
        uint32_t *bits = to->bits[to->words], any = 0, inside = 0xffffffffu;
        if (q->inputs - k < 32) { inside = (1u << (q->inputs - k)) - 1; }
        for (unsigned i = 0; i < q->bits; i++) {
            bits[i] = from[i] ^ (q->code[most] >> i & 1 ? inside : 0u);
            any |= bits[i];
            to->constant -= to->factor[i] * (uint32_t)__builtin_popcount(bits[i]);
        }
        to->place[to->words] = (uint16_t)(k / 32);
        to->words += any != 0;
    }
}

/* Finds what differs from the most frequent level. */
static void luc_differ(const struct luc_levels *q, const uint8_t *x, struct luc_different *to)
{
    uint16_t count[LUC_MOST_LEVELS] = {0};
    unsigned most = 0;
    for (unsigned k = 0; k < q->inputs; k += 32) { luc_basis_bits(q, x, k, to->bits[k / 32], count); }
    for (unsigned l = 1; l < 1u << q->bits; l++) {
        if (count[l] > count[most]) { most = l; }
    }
    to->middle = 2 * (uint32_t)q->level[most];
    to->constant = 0u - (uint32_t)q->level[most] * q->inputs;
    to->total = 0;
    for (unsigned l = 0; l < 1u << q->bits; l++) { to->total += (int64_t)count[l] * q->level[l]; }
    for (unsigned i = 0; i < q->bits; i++) {
        uint32_t twice = 2 * (uint32_t)q->basis[i];
        to->factor[i] = q->code[most] >> i & 1 ? 0u - twice : twice;
    }
    luc_keep(q, most, to);
    for (unsigned i = 0; i < q->bits; i++) { to->factor[i] *= 2; }
}

#define LUC_COUNT(sum, bits) \
    do { \
        luc_bits t_ = (bits); \
        luc_ones(&t_); \
        sum += t_; \
    } while (0)

/* Sums of LUC_WORDS outputs over the inputs, for one basis element of the weights. */
static inline __attribute__((always_inline)) void luc_count_different(
    const struct luc_different *x, const luc_bits *bits, const uint16_t *totals, luc_sums *sums,
    const unsigned planes)
{
    const luc_bits none = LUC_ZERO;
    luc_bits a = none, b = none, c = none, d = none;
    for (unsigned w = 0; w < x->words; w++) {
        const luc_bits row = bits[x->place[w]];
        LUC_COUNT(a, row & x->bits[w][0]);
        if (planes > 1) { LUC_COUNT(b, row & x->bits[w][1]); }
        if (planes > 2) { LUC_COUNT(c, row & x->bits[w][2]); }
        if (planes > 3) { LUC_COUNT(d, row & x->bits[w][3]); }
    }
    a = a * x->factor[0] + x->constant + LUC_WIDE(totals) * x->middle;
    if (planes > 1) { a += b * x->factor[1]; }
    if (planes > 2) { a += c * x->factor[2]; }
    if (planes > 3) { a += d * x->factor[3]; }
    *sums = (luc_sums)a;
}

/* All outputs of a record. */
static inline __attribute__((always_inline)) void luc_counted_record(
    const struct luc_lq_counted *op, const struct luc_different *x, const struct luc_results *to,
    int32_t *results, const unsigned planes)
{
    const luc_bits *bits = (const luc_bits *)(const void *)op->bits;
    const uint16_t *totals = op->totals;
    const int32_t *scales = op->scales;
    for (uint32_t output = 0; output < op->outputs; output += LUC_WORDS) {
        struct luc_products sum = {0};
        for (unsigned j = 0; j < op->weight_bits; j++) {
            luc_sums sums;
            luc_count_different(x, bits, totals, &sums, planes);
            luc_add_products(&sum, &sums, scales);
            bits += (op->inputs + 31u) / 32;
            totals += LUC_WORDS;
            scales += LUC_WORDS;
        }
        luc_finish(to, &sum, x->total, output, results);
    }
}

/* y: int32_t [records][outputs], or uint8_t of the same shape where there are next levels. */
static void luc_lq_counted(const struct luc_lq_counted *op, const uint8_t *x, void *y, void *scratch)
{
    struct luc_levels q = {op->level, op->code, op->basis, op->inputs, op->input_bits};
    const struct luc_results to = {op->outputs, op->next_bits, op->starts, op->offsets, op->thresholds};
    uint32_t size = op->outputs * (op->next_bits ? 1u : 4u), words = (op->inputs + 31u) / 32;
    uint8_t *end = (uint8_t *)y + op->records * size;
    struct luc_different found;
    int32_t *results;
    found.bits = (uint32_t(*)[LUC_MOST_BITS])scratch;
    results = (int32_t *)(void *)(found.bits + words);
    found.place = (uint16_t *)(void *)(results + (op->outputs + LUC_WORDS - 1u) / LUC_WORDS * LUC_WORDS);
    for (uint8_t *result = (uint8_t *)y; result < end; result += size, x += op->inputs) {
        luc_differ(&q, x, &found);
        if (op->input_bits == 1) { luc_counted_record(op, &found, &to, results, 1); }
        if (op->input_bits == 2) { luc_counted_record(op, &found, &to, results, 2); }
        if (op->input_bits == 3) { luc_counted_record(op, &found, &to, results, 3); }
        if (op->input_bits == 4) { luc_counted_record(op, &found, &to, results, 4); }
        luc_leave(&to, results, result);
    }
}

#endif
