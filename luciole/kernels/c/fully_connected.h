/* FULLY_CONNECTED: rows [rows, inputs] to [rows, outputs]. */
#ifndef LUC_FULLY_CONNECTED_H
#define LUC_FULLY_CONNECTED_H

#include "dots.h"
#include "fixed_point.h"
#include "packed.h"

struct luc_fully_connected_int8 {
    int32_t rows;
    int32_t inputs;
    int32_t outputs;
    int32_t result_zero;
    int32_t least;
    int32_t most;
    const int8_t *weights; /* [outputs][inputs] */
    const int32_t *starts; /* [outputs]: biases, less what the zero point of inputs adds */
    const double *factors; /* [outputs] */
    const int32_t *multipliers; /* [outputs]: the same as numbers of 31 bits */
    const int8_t *bits;         /* [outputs]: places behind the steps that these and `up` leave */
    int32_t up;                 /* places that all sums leave free above them */
    const int16_t *zeros;       /* [outputs]: zero points of weights, or none */
};

/* A sum of products with weights less their zero point, of that with the weights, and of inputs. */
static inline luc_sum_int8 luc_fully_connected_centred_int8(const struct luc_fully_connected_int8 *op,
                                                            int32_t output, luc_sum_int8 sum,
                                                            int32_t total)
{
    (void)op;
    (void)output;
    (void)total;
    return sum;
}

static inline luc_sum_uint8 luc_fully_connected_centred_uint8(const struct luc_fully_connected_uint8 *op,
                                                              int32_t output, luc_sum_uint8 sum,
                                                              int32_t total)
{
    return sum - op->zeros[output] * total;
}

/* A sum times a factor in double precision, halves away from zero, as TFLite does. */
static int32_t luc_scaled_exactly(double sum, double factor)
{
    double scaled = sum * factor;
    int32_t steps;
    if (scaled > 2147483000.0) { scaled = 2147483000.0; } /* beyond all limits of elements */
    if (scaled < -2147483000.0) { scaled = -2147483000.0; }
    steps = (int32_t)scaled;
    if (scaled - steps >= 0.5) { return steps + 1; }
    return scaled - steps <= -0.5 ? steps - 1 : steps;
}

/* The same by integers, but for what may lie on a half: some bits behind the steps are exact enough to
 * tell all others.
 */
static inline luc_code_int8 luc_fully_connected_output_int8(const struct luc_fully_connected_int8 *op,
                                                            int32_t output, luc_sum_int8 sum)
{
    int bits = op->bits[output];
    int32_t steps, rest, mask;
    sum += op->starts[output];
    if (bits < 2) {
        steps = luc_scaled_exactly(sum, op->factors[output]);
        return luc_stored_int8(steps, op->result_zero, op->least, op->most);
    }
    steps = (int32_t)((int64_t)(sum * (1 << op->up)) * op->multipliers[output] >> 32);
    steps += 1 << (bits - 1), mask = (1 << bits) - 1;
    rest = steps & mask;
    steps = rest && rest != mask ? steps >> bits : luc_scaled_exactly(sum, op->factors[output]);
    return luc_stored_int8(steps, op->result_zero, op->least, op->most);
}

struct luc_fully_connected_int16 {
    int32_t rows;
    int32_t inputs;
    int32_t outputs;
    int32_t least;
    int32_t most;
    const int8_t *weights;      /* [outputs][inputs] */
    const luc_bias_int16 *bias; /* [outputs], or none */
    const double *factors;      /* [outputs] */
};

static inline luc_code_int16 luc_fully_connected_output_int16(const struct luc_fully_connected_int16 *op,
                                                              int32_t output, luc_sum_int16 sum)
{
    luc_bias_int16 bias = op->bias != NULL ? op->bias[output] : 0;
    int32_t steps = luc_scaled_exactly((double)(sum + bias), op->factors[output]);
    return luc_stored_int16(steps, 0, op->least, op->most);
}

/* Some outputs of all rows, whose weights are given. */
static void luc_fully_connected_outputs_int8(const struct luc_fully_connected_int8 *op,
                                             const int8_t *weights, const luc_code_int8 *x, int32_t first,
                                             int32_t end, luc_code_int8 *y, int16_t *row)
{
    for (int32_t k = 0; k < op->rows; k++, x += op->inputs, y += op->outputs) {
        const int8_t *by = weights;
        int32_t total;
        luc_spread_int8(x, 0, op->inputs, row, 1);
        total = luc_total_int8(row, op->inputs, 1);
        for (int32_t o = first; o < end; o += 2, by += 2 * op->inputs) {
            luc_sum_int8 sums[2];
            int32_t other = o + 1 < end;
            luc_dots_2_int8(by, by + (other ? op->inputs : 0), row, op->inputs, sums);
            sums[0] = luc_fully_connected_centred_int8(op, o, sums[0], total);
            y[o] = luc_fully_connected_output_int8(op, o, sums[0]);
            if (other == 0) { break; }
            sums[1] = luc_fully_connected_centred_int8(op, o + 1, sums[1], total);
            y[o + 1] = luc_fully_connected_output_int8(op, o + 1, sums[1]);
        }
    }
}

static void luc_fully_connected_int8(const struct luc_fully_connected_int8 *op, const luc_code_int8 *x,
                                     luc_code_int8 *y, void *scratch)
{
    luc_fully_connected_outputs_int8(op, op->weights, x, 0, op->outputs, y, (int16_t *)scratch);
}

struct luc_fully_connected_packed_int8 {
    struct luc_fully_connected_int8 layer;
    struct luc_packed packed;
};

static void luc_fully_connected_packed_int8(const struct luc_fully_connected_packed_int8 *op,
                                            const luc_code_int8 *x, luc_code_int8 *y, void *scratch)
{
    int32_t size = op->layer.inputs, outputs = op->layer.outputs, block = op->packed.block;
    int16_t *row = (int16_t *)scratch;
    int8_t *weights = (int8_t *)(row + (size + 3) / 4 * 4);
    for (int32_t first = 0; first < outputs; first += block) {
        int32_t end = first + block < outputs ? first + block : outputs;
        for (int32_t o = first; o < end; o++) {
            luc_unpack(&op->packed, o, size, 1, weights + (o - first) * size);
        }
        luc_fully_connected_outputs_int8(&op->layer, weights, x, first, end, y, row);
    }
}

struct luc_fully_connected_float {
    int32_t rows;
    int32_t inputs;
    int32_t outputs;
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    const float *weights; /* [outputs][inputs] */
    const float *bias;    /* [outputs], or none */
};

static void luc_fully_connected_float(const struct luc_fully_connected_float *op, const float *x,
                                      float *y)
{
    for (int32_t row = 0; row < op->rows; row++, x += op->inputs) {
        for (int32_t o = 0; o < op->outputs; o++) {
            const float *w = op->weights + o * op->inputs;
            float sum = 0.0f;
            for (int32_t k = 0; k < op->inputs; k++) { sum += x[k] * w[k]; }
            if (op->bias != NULL) { sum += op->bias[o]; }
            if (op->has_least && sum < op->least) { sum = op->least; }
            if (op->has_most && sum > op->most) { sum = op->most; }
            *y++ = sum;
        }
    }
}

struct luc_fully_connected_blocks {
    int32_t rows;
    int32_t inputs;
    int32_t outputs;
    int32_t size; /* of a block */
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    const int8_t *weights; /* [outputs][inputs] */
    const float *scales;   /* [outputs][inputs / size] */
    const float *bias;     /* [outputs], or none */
};

/* An output of all rows, whose weights are given. */
static void luc_fully_connected_block_output(const struct luc_fully_connected_blocks *op,
                                             const int8_t *weights, const float *x, int32_t o, float *y)
{
    const float *scales = op->scales + o * (op->inputs / op->size);
    for (int32_t row = 0; row < op->rows; row++, x += op->inputs) {
        float sum = 0.0f;
        for (int32_t k = 0, b = 0; k < op->inputs; b++) {
            float part = 0.0f;
            for (int32_t end = k + op->size; k < end; k++) { part += x[k] * (float)weights[k]; }
            sum += part * scales[b];
        }
        if (op->bias != NULL) { sum += op->bias[o]; }
        if (op->has_least && sum < op->least) { sum = op->least; }
        if (op->has_most && sum > op->most) { sum = op->most; }
        y[row * op->outputs + o] = sum;
    }
}

static void luc_fully_connected_blocks(const struct luc_fully_connected_blocks *op, const float *x, float *y)
{
    for (int32_t o = 0; o < op->outputs; o++) {
        luc_fully_connected_block_output(op, op->weights + o * op->inputs, x, o, y);
    }
}

struct luc_fully_connected_blocks_packed {
    struct luc_fully_connected_blocks layer;
    struct luc_packed packed;
};

/* `scratch` has the weights of an output. */
static void luc_fully_connected_blocks_packed(const struct luc_fully_connected_blocks_packed *op,
                                              const float *x, float *y, void *scratch)
{
    int8_t *weights = (int8_t *)scratch;
    for (int32_t o = 0; o < op->layer.outputs; o++) {
        luc_unpack(&op->packed, o, op->layer.inputs, 1, weights);
        luc_fully_connected_block_output(&op->layer, weights, x, o, y);
    }
}

#endif
