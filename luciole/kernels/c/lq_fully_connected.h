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
    const int32_t *level;      /* [1 << input_bits], rising */
    const uint8_t *code;       /* [1 << input_bits]: signs of the basis behind each level */
    const int32_t *basis;      /* [input_bits] */
    const uint32_t *bits;      /* [blocks][inputs + 1]: weights, 32 lanes in a word, then a row of 0 */
    const uint16_t *totals;    /* [outputs * weight_bits]: ones of each lane */
    const int32_t *scales;     /* [outputs * weight_bits]: bases of the weights */
    const int32_t *starts;     /* [outputs]: biases */
    const int32_t *offsets;    /* [outputs]: added to all of an output's weights, or none */
    const int32_t *thresholds; /* [(1 << next_bits) - 1], between the levels of the next layer */
};

/* One record: numbers of levels [inputs] to fixed point int32 or numbers of levels [outputs]. */
static void luc_lq_record(const struct luc_lq_fully_connected *op, const struct luc_sorted *x,
                          uint32_t (*planes)[LUC_PLANES], int32_t *results, uint8_t *levels)
{
    unsigned output = 0, left = op->weight_bits;
    const uint16_t *totals = op->totals;
    const int32_t *scales = op->scales;
    int64_t sum = 0;
    for (const uint32_t *bits = op->bits;; bits += op->inputs + 1u) {
        for (unsigned s = 0; s < x->segments; s++) {
            luc_count(bits, x->rows + x->segment[s].first, &x->segment[s], planes[s]);
            luc_transpose(planes[s], x->segment[s].width);
        }
        for (unsigned i = 0; i < LUC_PLANES; i++, totals += 4) {
            int32_t sums[4], result;
            luc_weigh(x, planes[0] + i, totals, sums);
            for (unsigned k = 0; k < 4; k++) {
                sum += (int64_t)sums[k] * *scales++;
                if (--left) continue;
                if (op->offsets) sum += x->total * op->offsets[output];
                result = op->starts[output] + (int32_t)(sum >> 32);
                if (op->next_bits)
                    levels[output] = luc_level(result, op->thresholds, op->next_bits);
                else
                    results[output] = result;
                if (++output == op->outputs) return;
                left = op->weight_bits;
                sum = 0;
            }
        }
    }
}

/* y: int32_t [records][outputs], or uint8_t of the same shape where there are next levels. */
static void luc_lq_fully_connected(const struct luc_lq_fully_connected *op, const uint8_t *x,
                                   void *y, void *scratch)
{
    struct luc_levels q = {op->level, op->code, op->basis, op->inputs, op->input_bits};
    uint32_t(*planes)[LUC_PLANES];
    struct luc_sorted sorted;
    int32_t *results = (int32_t *)y;
    uint8_t *levels = (uint8_t *)y;
    sorted.segment = (struct luc_segment *)scratch;
    planes = (uint32_t(*)[LUC_PLANES])(void *)(sorted.segment + op->most_segments);
    sorted.rows = (uint16_t *)(void *)(planes + op->most_segments);
    for (uint32_t record = 0; record < op->records; record++) {
        uint32_t place = record * op->outputs;
        luc_sort(&q, x + record * op->inputs, &sorted);
        luc_lq_record(op, &sorted, planes, results + (op->next_bits ? 0 : place), levels + place);
    }
}

#endif
