/* LQ_FULLY_CONNECTED: a dense layer with learned levels, in integers alone. */
#ifndef LUC_LQ_FULLY_CONNECTED_H
#define LUC_LQ_FULLY_CONNECTED_H

#include "learned_levels.h"

struct luc_lq_fully_connected {
    uint32_t records;
    uint16_t inputs;
    uint16_t outputs;
    uint8_t input_bits;
    uint8_t weight_bits;
    uint8_t next_bits;         /* of the levels that results are turned into, 0: they are kept */
    uint16_t most_segments;
    uint32_t most_rows; /* a multiple of 8 */
    const int32_t *level;      /* [1 << input_bits], rising */
    const uint8_t *code;       /* [1 << input_bits]: signs of the basis behind each level */
    const int32_t *basis;      /* [input_bits] */
    const uint32_t *bits;      /* [blocks][inputs + 1][words]: weights, 32 lanes in a word; last row 0 */
    const uint16_t *totals;    /* [outputs / words][weight_bits][words]: ones of each lane */
    const int32_t *scales;     /* of the same shape: bases of the weights */
    const int32_t *starts;     /* [outputs]: biases */
    const int32_t *offsets;    /* [outputs]: added to all of an output's weights, or none */
    const int32_t *thresholds; /* [(1 << next_bits) - 1], between the levels of the next layer */
};

/* One record: numbers of levels [inputs] to fixed point int32 or numbers of levels [outputs]. */
static void luc_lq_record(const struct luc_lq_fully_connected *op, const struct luc_sorted *x,
                          luc_bits (*planes)[LUC_PLANES], const struct luc_results *to, void *y)
{
    const luc_bits *bits = (const luc_bits *)(const void *)op->bits;
    const uint16_t *totals = op->totals;
    const int32_t *scales = op->scales;
    unsigned output = 0, left = op->weight_bits;
    const struct luc_products none = {0};
    struct luc_products sum = none;
    for (;; bits += op->inputs + 1u) {
        for (unsigned s = 0; s < x->segments; s++) {
            luc_count(bits, x->rows + x->segment[s].first, &x->segment[s], planes[s]);
            luc_transpose(planes[s], x->segment[s].width);
        }
        for (unsigned i = 0; i < LUC_PLANES; i++, totals += 4 * LUC_WORDS) {
            luc_sums sums[4];
            luc_weigh(x, planes[0] + i, totals, sums);
            for (unsigned k = 0; k < 4; k++, scales += LUC_WORDS) {
                luc_add_products(&sum, &sums[k], scales);
                if (--left != 0) { continue; }
                luc_finish(to, &sum, x->total, output, y);
                output += LUC_WORDS;
                if (output >= op->outputs) { return; }
                left = op->weight_bits;
                sum = none;
            }
        }
    }
}

/* y: int32_t [records][outputs], or uint8_t of the same shape where there are next levels. */
static void luc_lq_fully_connected(const struct luc_lq_fully_connected *op, const uint8_t *x,
                                   void *y, void *scratch)
{
    struct luc_levels q = {op->level, op->code, op->basis, op->inputs, op->input_bits};
    const struct luc_results to = {op->outputs, op->next_bits, op->starts, op->offsets, op->thresholds};
    luc_bits(*planes)[LUC_PLANES] = (luc_bits(*)[LUC_PLANES])scratch;
    struct luc_sorted sorted;
    uint32_t size = op->outputs * (op->next_bits ? 1u : 4u);
    uint8_t *end = (uint8_t *)y + op->records * size;
    sorted.segment = (struct luc_segment *)(void *)(planes + op->most_segments);
    sorted.rows = (uint16_t *)(void *)(sorted.segment + op->most_segments);
    for (uint8_t *result = (uint8_t *)y; result < end; result += size, x += op->inputs) {
        luc_sort(&q, x, &sorted);
#if LUC_WORDS > 1
        luc_lq_record(op, &sorted, planes, &to, sorted.rows + op->most_rows);
        luc_leave(&to, (const int32_t *)(const void *)(sorted.rows + op->most_rows), result);
#else
        luc_lq_record(op, &sorted, planes, &to, result);
#endif
    }
}

#endif
