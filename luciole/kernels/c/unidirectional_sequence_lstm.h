/* Long short-term memory, one step after the other. Gates come in the order forget, candidate, output,
 * input; the input gate is absent where it is 1 - forget gate. States last from call to call.
 */
#ifndef LUC_UNIDIRECTIONAL_SEQUENCE_LSTM_H
#define LUC_UNIDIRECTIONAL_SEQUENCE_LSTM_H

#include "activations.h"
#include "fixed_point_16.h"

#include <string.h>

enum { LUC_FORGET, LUC_CANDIDATE, LUC_OUTPUT, LUC_INPUT };

struct luc_lstm_float {
    int32_t batches;
    int32_t times;
    int32_t inputs;
    int32_t cells;
    int32_t outputs;
    int32_t gates;
    int32_t x_time; /* numbers from step to step, and from batch to batch */
    int32_t x_batch;
    int32_t y_time;
    int32_t y_batch;
    uint8_t is_tanh; /* the activation, else it cuts off */
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    float cell_clip; /* 0: none */
    float output_clip;
    const float *weights;         /* [gates][cells][inputs] */
    const float *recurrent;       /* [gates][cells][outputs] */
    const float *biases;          /* [gates][cells] */
    const float *peepholes;       /* [gates][cells], or none */
    const float *norms;           /* [gates][cells], or none */
    const float *projection;      /* [outputs][cells], or none */
    const float *projection_bias; /* [outputs], or none */
};

/* A number between -limit and limit, where there is one. */
static inline float luc_clipped(float x, float limit)
{
    if (limit > 0.0f && x > limit) { return limit; }
    return limit > 0.0f && x < -limit ? -limit : x;
}

/* sum_k a_k b_k. */
static float luc_product(const float *a, const float *b, int32_t count)
{
    float sum = 0.0f;
    for (int32_t k = 0; k < count; k++) { sum += a[k] * b[k]; }
    return sum;
}

/* Gives numbers mean 0 and variance 1. */
static void luc_lstm_normalize(float *x, int32_t count)
{
    float mean = 0.0f, variance = 0.0f;
    for (int32_t k = 0; k < count; k++) { mean += x[k]; }
    mean /= (float)count;
    for (int32_t k = 0; k < count; k++) { variance += (x[k] - mean) * (x[k] - mean); }
    variance = 1.0f / luc_root(variance / (float)count + 1e-8f);
    for (int32_t k = 0; k < count; k++) { x[k] = (x[k] - mean) * variance; }
}

/* Gates [count] behind their products: what peepholes see, normalization, bias. */
static void luc_lstm_gate(const struct luc_lstm_float *op, int gate, const float *cell, float *x)
{
    int32_t count = op->cells, first = gate * count;
    for (int32_t k = 0; op->peepholes && k < count; k++) { x[k] += cell[k] * op->peepholes[first + k]; }
    if (op->norms != NULL) { luc_lstm_normalize(x, count); }
    for (int32_t k = 0; op->norms && k < count; k++) { x[k] *= op->norms[first + k]; }
    for (int32_t k = 0; k < count; k++) { x[k] += op->biases[first + k]; }
}

static void luc_lstm_open(const struct luc_lstm_float *op, int gate, const float *cell, float *x)
{
    luc_lstm_gate(op, gate, cell, x);
    for (int32_t k = 0; k < op->cells; k++) { x[k] = luc_logistic_of(x[k]); }
}

static void luc_lstm_activate(const struct luc_lstm_float *op, const float *x, float *y)
{
    struct luc_clamp within = {(uint32_t)op->cells, 0, 0, 0.0f, 0.0f};
    within.has_least = op->has_least;
    within.has_most = op->has_most;
    within.least = op->least;
    within.most = op->most;
    if (op->is_tanh != 0) {
        for (int32_t k = 0; k < op->cells; k++) { y[k] = luc_tanh_of(x[k]); }
    } else {
        luc_clamp(&within, x, y);
    }
}

/* One step of one batch: states, and outputs to y. */
static void luc_lstm_step(const struct luc_lstm_float *op, const float *x, float *hidden, float *cell,
                          float *y, float *gates)
{
    int32_t n = op->cells;
    float *forget = gates, *candidate = gates + n, *read = gates + 2 * n, *write = gates + 3 * n;
    for (int32_t k = 0; k < op->gates * n; k++) {
        gates[k] = luc_product(op->weights + k * op->inputs, x, op->inputs);
        gates[k] += luc_product(op->recurrent + k * op->outputs, hidden, op->outputs);
    }
    luc_lstm_open(op, LUC_FORGET, cell, forget);
    if (op->gates > LUC_INPUT) { luc_lstm_open(op, LUC_INPUT, cell, write); }
    for (int32_t k = 0; op->gates == LUC_INPUT && k < n; k++) { write[k] = 1.0f - forget[k]; }
    luc_lstm_gate(op, LUC_CANDIDATE, cell, candidate);
    luc_lstm_activate(op, candidate, candidate);
    for (int32_t k = 0; k < n; k++) {
        cell[k] = luc_clipped(forget[k] * cell[k] + write[k] * candidate[k], op->cell_clip);
    }
    luc_lstm_open(op, LUC_OUTPUT, cell, read);
    luc_lstm_activate(op, cell, candidate);
    for (int32_t k = 0; k < n; k++) { read[k] *= candidate[k]; }
    for (int32_t o = 0; o < op->outputs; o++) {
        y[o] = op->projection ? luc_product(op->projection + o * n, read, n) : read[o];
        if (op->projection_bias != NULL) { y[o] += op->projection_bias[o]; }
        if (op->projection != NULL) { y[o] = luc_clipped(y[o], op->output_clip); }
    }
    (void)memcpy(hidden, y, (uint32_t)op->outputs * sizeof *y);
}

/* The candidate of a peephole is 0: it has none. */
static void luc_lstm_float(const struct luc_lstm_float *op, const float *x, float *hidden, float *cell,
                           float *y, void *scratch)
{
    for (int32_t n = 0; n < op->batches; n++, hidden += op->outputs, cell += op->cells) {
        for (int32_t t = 0; t < op->times; t++) {
            luc_lstm_step(op, x + n * op->x_batch + t * op->x_time, hidden, cell,
                          y + n * op->y_batch + t * op->y_time, (float *)scratch);
        }
    }
}

struct luc_lstm_int8 {
    int32_t batches;
    int32_t times;
    int32_t inputs;
    int32_t cells;
    int32_t outputs;
    int32_t gates;
    int32_t x_time; /* numbers from step to step, and from batch to batch */
    int32_t x_batch;
    int32_t y_time;
    int32_t y_batch;
    int32_t input_zero;
    int32_t state_zero;
    int32_t cell_bits; /* integer bits of the cells' state */
    int32_t cell_least;
    int32_t cell_most;
    int32_t shown_multiplier; /* of what cells show */
    int32_t shown_shift;
    int32_t shown_zero;
    int32_t multiplier; /* of the projection */
    int32_t shift;
    int32_t zero;
    int32_t least;
    int32_t most;
    const int8_t *weights;           /* [gates][cells][inputs] */
    const int8_t *recurrent;         /* [gates][cells][outputs] */
    const int32_t *biases;           /* [gates][cells] */
    const int32_t *factors;          /* [gates][4]: multiplier and shift of inputs, and of the state */
    const int16_t *peepholes;        /* [gates][cells], or none */
    const int32_t *peephole_factors; /* [gates][2] */
    const int16_t *norms;            /* [gates][cells], or none */
    const int32_t *norm_biases;      /* [gates][cells] */
    const int32_t *norm_factors;     /* [gates][3]: multiplier, shift, and the least variance */
    const int8_t *projection;        /* [outputs][cells], or none */
    const int32_t *projection_bias;  /* [outputs] */
};

/* sum_k a_k (b_k - zero). */
static int32_t luc_product_int8(const int8_t *a, const int8_t *b, int32_t count, int32_t zero)
{
    int32_t sum = 0;
    for (int32_t k = 0; k < count; k++) { sum += a[k] * (b[k] - zero); }
    return sum;
}

/* x y / 2^31 of fractions, halves up. */
static inline int64_t luc_fraction(int64_t x, int64_t y)
{
    return (x * y + (1 << 30)) >> 31;
}

/* x 2^bits between the limits of 32 bits. */
static inline int64_t luc_raised(int64_t x, int bits)
{
    int64_t found = x * ((int64_t)1 << bits);
    return found < INT32_MIN ? INT32_MIN : found > INT32_MAX ? INT32_MAX : found;
}

/* 1 / sqrt(x) as multiplier / 2^31 2^shift: TFLite's GetInvSqrtQuantizedMultiplierExp. */
static int32_t luc_inverse_root_int(int64_t x, int *shift)
{
    int64_t half, found = 1 << 28;
    int down = 11, pairs = 0;
    *shift = 0;
    if (x <= 1) { return INT32_MAX; }
    if (x >= 1 << 29) { x /= 4, down = 12; }
    while (x << (2 * pairs + 2) < 1 << 29) pairs++;
    half = luc_halved((int32_t)((x << (2 * pairs)) >> 1), 1);
    for (int k = 0; k < 5; k++) {
        int64_t cube = luc_raised(luc_fraction(luc_fraction(found, found), found), 6);
        found = luc_raised(luc_fraction((1 << 28) + (1 << 27), found) - luc_fraction(half, cube), 3);
    }
    down -= pairs;
    if (down > 0) { *shift = -down; }
    return (int32_t)(luc_fraction(found, 1518500250) * ((int64_t)1 << (down < 0 ? -down : 0)));
}

/* Layer normalization of a gate. */
static void luc_lstm_normalize_int8(const struct luc_lstm_int8 *op, int gate, int32_t *x)
{
    const int32_t *factor = op->norm_factors + 3 * gate, *biases = op->norm_biases + gate * op->cells;
    const int16_t *norms = op->norms + gate * op->cells;
    int64_t total = 0, squares = 0, mean, variance;
    int32_t multiplier;
    int shift;
    for (int32_t k = 0; k < op->cells; k++) {
        total += x[k];
        squares += (int64_t)x[k] * x[k];
    }
    mean = total * 1024 / op->cells;
    variance = (squares * ((1 << 20) / op->cells) - mean * mean) / (1 << 20);
    multiplier = luc_inverse_root_int(variance < 1 ? factor[2] : variance, &shift);
    for (int32_t k = 0; k < op->cells; k++) {
        int32_t centred = (int32_t)(uint32_t)(1024 * (int64_t)x[k] - mean);
        int64_t sum = (int64_t)luc_scaled(centred, multiplier, shift) * norms[k] + biases[k];
        sum = (sum + (sum > 0 ? 512 : -512)) / 1024;
        x[k] = luc_short(luc_scaled((int32_t)(uint32_t)sum, factor[0], factor[1]));
    }
}

/* A gate [cells] behind its products: what peepholes see, and normalization. */
static void luc_lstm_gate_int8(const struct luc_lstm_int8 *op, int gate, const int16_t *cell, int32_t *x)
{
    for (int32_t k = 0; op->peepholes && k < op->cells; k++) {
        int32_t seen = cell[k] * op->peepholes[gate * op->cells + k];
        const int32_t *factor = op->peephole_factors + 2 * gate;
        x[k] = luc_short(x[k] + luc_scaled(seen, factor[0], factor[1]));
    }
    if (op->norms != NULL) { luc_lstm_normalize_int8(op, gate, x); }
}

/* All gates before their activation. */
static void luc_lstm_products_int8(const struct luc_lstm_int8 *op, const int8_t *x, const int8_t *hidden,
                                   int32_t *gates)
{
    const int8_t *w = op->weights, *r = op->recurrent;
    for (int32_t gate = 0, place = 0; gate < op->gates; gate++) {
        for (int32_t k = 0; k < op->cells; k++, place++, w += op->inputs, r += op->outputs) {
            const int32_t *factor = op->factors + 4 * gate;
            int32_t sum = op->biases[place] + luc_product_int8(w, x, op->inputs, op->input_zero);
            int32_t state = luc_product_int8(r, hidden, op->outputs, op->state_zero);
            sum = luc_short(luc_scaled(sum, factor[0], factor[1]));
            gates[place] = luc_short(sum + luc_scaled(state, factor[2], factor[3]));
        }
    }
}

/* The next state of every cell. */
static void luc_lstm_cells_int8(const struct luc_lstm_int8 *op, int16_t *cell, const int32_t *gates)
{
    for (int32_t k = 0; k < op->cells; k++) {
        int32_t forget = luc_logistic_16(gates[k]), write = 32767 - forget, next;
        int32_t candidate = luc_tanh_16(gates[op->cells + k], 3);
        if (op->gates > LUC_INPUT) { write = luc_logistic_16(gates[3 * op->cells + k]); }
        next = luc_halved(forget * cell[k], 15) + luc_halved(write * candidate, 15 + op->cell_bits);
        next = luc_short(next);
        next = next < op->cell_least ? op->cell_least : next > op->cell_most ? op->cell_most : next;
        cell[k] = (int16_t)next;
    }
}

/* One step of one batch: states, and outputs to y. */
static void luc_lstm_step_int8(const struct luc_lstm_int8 *op, const int8_t *x, int8_t *hidden,
                               int16_t *cell, int8_t *y, int32_t *gates)
{
    int32_t n = op->cells, *read = gates + LUC_OUTPUT * n;
    int8_t *shown = op->projection ? (int8_t *)(gates + 4 * n) : y;
    luc_lstm_products_int8(op, x, hidden, gates);
    for (int gate = 0; gate < op->gates; gate++) {
        if (gate != LUC_OUTPUT) { luc_lstm_gate_int8(op, gate, cell, gates + gate * n); }
    }
    luc_lstm_cells_int8(op, cell, gates);
    luc_lstm_gate_int8(op, LUC_OUTPUT, cell, read);
    for (int32_t k = 0; k < n; k++) {
        int32_t product = luc_logistic_16(read[k]) * luc_tanh_16(cell[k], op->cell_bits);
        product = luc_scaled(product, op->shown_multiplier, op->shown_shift);
        shown[k] = luc_stored_int8(product, op->shown_zero, -128, 127);
    }
    for (int32_t o = 0; op->projection && o < op->outputs; o++) {
        int32_t sum = op->projection_bias[o];
        sum += luc_product_int8(op->projection + o * n, shown, n, op->shown_zero);
        sum = luc_stored_int8(luc_scaled(sum, op->multiplier, op->shift), op->zero, -128, 127);
        y[o] = (int8_t)(sum < op->least ? op->least : sum > op->most ? op->most : sum);
    }
    (void)memcpy(hidden, y, (uint32_t)op->outputs);
}

/* Bit for bit TFLite's kernel of INT8 with states of cells in INT16. */
static void luc_lstm_int8(const struct luc_lstm_int8 *op, const int8_t *x, int8_t *hidden, int16_t *cell,
                          int8_t *y, void *scratch)
{
    for (int32_t n = 0; n < op->batches; n++, hidden += op->outputs, cell += op->cells) {
        for (int32_t t = 0; t < op->times; t++) {
            luc_lstm_step_int8(op, x + n * op->x_batch + t * op->x_time, hidden, cell,
                               y + n * op->y_batch + t * op->y_time, (int32_t *)scratch);
        }
    }
}

#endif
